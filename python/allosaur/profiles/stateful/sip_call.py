"""A call is set up by SIP over UDP: INVITE, trying, ringing, OK, ACK; and BYE at its end.

It tests devices that follow SIP. What must hold: each call is set up and ends.

Run it:  allosaur run sip_call -t ring_msec=3000 -d 10 --local
Tunables: ring_msec (how long it rings) and talk_msec (how long they talk), in milliseconds.
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


def message(first):
    return f"{first}\r\nFrom: <sip:a@site.example>\r\nTo: <sip:b@site.example>\r\nCall-ID: 1\r\n\r\n"


class SipCall:
    """Messages of both sides in turn."""

    def get_profile(self, ring_msec=500, talk_msec=500):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(stream=False), ASTFProgram(stream=False)
        for program in (client, server):
            program.set_keepalive_msg(4 * max(ring_msec, talk_msec, 1000))
        client.send_msg(message("INVITE sip:b@site.example SIP/2.0"))
        client.recv_msg(3)
        client.send_msg(message("ACK sip:b@site.example SIP/2.0"))
        client.delay(talk_msec * 1000)
        client.send_msg(message("BYE sip:b@site.example SIP/2.0"))
        client.recv_msg(1)
        server.recv_msg(1)
        server.send_msg(message("SIP/2.0 100 Trying"))
        server.send_msg(message("SIP/2.0 180 Ringing"))
        server.delay(ring_msec * 1000)
        server.send_msg(message("SIP/2.0 200 OK"))
        server.recv_msg(2)
        server.send_msg(message("SIP/2.0 200 OK"))
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=5060),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=5060)),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return SipCall()
