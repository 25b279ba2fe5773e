"""As many connections as you say, all the time: one that ends makes room for the next.

It tests tables of a device at a level. What must hold: the number of active flows stays at the limit.

Run it:  allosaur run steady_flows -t flows=10000 -d 10 --local
Tunables: flows (open at a time), seconds (how long each lasts, in all).
"""

from allosaur import (
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)


class SteadyFlows:
    """A limit with cont."""

    def get_profile(self, flows=100, seconds=2):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"hello")
        client.recv(5)
        client.delay(seconds * 1_000_000)
        server.recv(5)
        server.send(b"hello")
        server.wait_for_peer_close()
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(
                program=client,
                ip_gen=ip_gen,
                cps=flows,
                limit=flows,
                cont=True,
            ),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return SteadyFlows()
