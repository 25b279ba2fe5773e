"""Many open connections that do nothing: each says hello and is silent from then on.

It tests how many connections a device can hold. Start with nc=True, to not wait for their end. What must
hold: none is closed before its time.

Run it:  allosaur run open_flows -t flows=1000000,rate=10000 -d 10 --local
Tunables: flows (connections in all), rate (new ones a second), seconds (how long they are silent).
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


class OpenFlows:
    """A long delay after an exchange."""

    def get_profile(self, flows=1000, rate=500, seconds=60):
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
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, cps=rate, limit=flows),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return OpenFlows()
