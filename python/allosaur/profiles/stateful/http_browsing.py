"""A browser at work: a page, its style sheet and a picture on one connection, as it was captured.

It tests with a real connection, of which the bytes are nginx's and curl's. Any capture of one session can
stand here.

Run it:  allosaur run http_browsing -t rate=20 -d 10 --local
Tunables: rate (connections a second at multiplier 1), wait_usec (before the server answers, in
microseconds).
"""

from allosaur import ASTFCapInfo, ASTFCmdDelay, ASTFIPGen, ASTFIPGenDist, ASTFProfile


class HttpBrowsing:
    """A capture that comes with the package."""

    def get_profile(self, rate=1, wait_usec=1000):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        return ASTFProfile(
            default_ip_gen=ip_gen,
            cap_list=[ASTFCapInfo(file="http_browsing.pcap", cps=rate, s_delay=ASTFCmdDelay(wait_usec))],
        )


def register():
    return HttpBrowsing()
