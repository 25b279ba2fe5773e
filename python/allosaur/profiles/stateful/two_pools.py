"""Two pools: staff and guests, each with clients and servers of their own.

It tests rules of a device that go by addresses. What must hold: each pool reaches its servers and no other.

Run it:  allosaur run two_pools -d 10 --local
Tunables: staff and guests (connections a second at multiplier 1).
"""

from allosaur import (
    ASTFAssociationRule,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)


class TwoPools:
    """Two templates with pools that do not overlap."""

    def get_profile(self, staff=2, guests=1):
        """Return the profile."""
        templates = []
        for number, (port, rate) in enumerate(((80, staff), (8080, guests))):
            ip_gen = ASTFIPGen(
                dist_client=ASTFIPGenDist([f"16.{number}.0.1", f"16.{number}.0.254"]),
                dist_server=ASTFIPGenDist([f"48.{number}.0.1", f"48.{number}.255.254"]),
            )
            client, server = ASTFProgram(), ASTFProgram()
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            client.recv(500)
            server.recv(18)
            server.send(b"HTTP/1.1 200 OK\r\n\r\n", size=500, fill="*")
            templates.append(
                ASTFTemplate(
                    client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=port, cps=rate),
                    server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port)),
                )
            )
        return ASTFProfile(default_ip_gen=ip_gen, templates=templates)


def register():
    return TwoPools()
