"""HTTPS as it was captured: the handshake of TLS and encrypted data, replayed byte by byte.

It tests devices that tell TLS from other traffic by its bytes. The keys are those of the capture: nobody
can decrypt it, and the two ends do not try.

Run it:  allosaur run https -d 10 --local
Tunables: rate (connections a second at multiplier 1).
"""

from allosaur import ASTFCapInfo, ASTFIPGen, ASTFIPGenDist, ASTFProfile


class Https:
    """A capture on port 443."""

    def get_profile(self, rate=1):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        return ASTFProfile(default_ip_gen=ip_gen, cap_list=[ASTFCapInfo(file="https.pcap", cps=rate)])


def register():
    return Https()
