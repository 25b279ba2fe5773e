"""Addresses in order: each core has a range of clients of its own, servers are drawn at random.

It tests devices that spread load by address. The two sides move by different offsets from one pair of ports
to the next, too.

Run it:  allosaur run pools_per_core -d 10 --local
Tunables: clients (how many addresses, 16 to 250).
"""

from allosaur import (
    ASTFAssociationRule,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFIPGenGlobal,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)


class PoolsPerCore:
    """All that a pool can have."""

    def get_profile(self, clients=200):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            glob=ASTFIPGenGlobal(ip_offset="1.0.0.0", ip_offset_server="0.16.0.0"),
            dist_client=ASTFIPGenDist(
                ["16.0.0.1", f"16.0.0.{clients}"], distribution="seq", per_core_distribution="seq"
            ),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.15.254"], distribution="rand"),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"ping")
        client.recv(4)
        server.recv(4)
        server.send(b"pong")
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=7),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=7)),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return PoolsPerCore()
