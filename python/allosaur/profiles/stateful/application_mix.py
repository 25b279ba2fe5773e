"""A mix of applications, as they were captured: pages, uploads, encrypted pages, names.

It tests with what a network carries; each application is a template group with its own counters. What must
hold: get_traffic_tg_stats() has no errors in any group.

Run it:  allosaur run application_mix -d 10 --local
Tunables: rate (flows a second at multiplier 1, of all applications together).
"""

from allosaur import ASTFCapInfo, ASTFIPGen, ASTFIPGenDist, ASTFProfile

MIX = (("dns", 53, 50), ("https", 443, 30), ("http_browsing", 80, 15), ("http_post", 8080, 5))


class ApplicationMix:
    """Captures that come with the package, in the shares below."""

    def get_profile(self, rate=100):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        return ASTFProfile(
            default_ip_gen=ip_gen,
            cap_list=[
                ASTFCapInfo(file=f"{name}.pcap", cps=rate * share / 100, port=port, tg_name=name)
                for name, port, share in MIX
            ],
        )


def register():
    return ApplicationMix()
