"""UDP, request and response, several times over; the flow is closed by its commands.

It tests flows of messages. What must hold: every request is answered; a lost one shows, as nobody sends
again.

Run it:  allosaur run udp_exchange -t rounds=10 -d 10 --local
Tunables: rounds (requests on a flow), size (bytes of a response).
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


class UdpExchange:
    """Messages there and back."""

    def get_profile(self, rounds=3, size=500):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(stream=False), ASTFProgram(stream=False)
        for _ in range(rounds):
            client.send_msg(b"question")
            client.recv_msg(1)
            server.recv_msg(1)
            server.send_msg(b"answer", size=size, fill=".")
        client.close_msg()
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=7000),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=7000)),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return UdpExchange()
