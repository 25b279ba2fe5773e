"""UDP flows that are silent for long, and are kept all the same.

It tests timers for UDP in a device, and in the flow itself: only what comes breaks the silence. What must
hold: the answer after the pause is of the same flow.

Run it:  allosaur run udp_keepalive -t pause_msec=60000 -d 10 --local
Tunables: pause_msec (the silence, in milliseconds).
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


class UdpKeepalive:
    """A long pause between two exchanges."""

    def get_profile(self, pause_msec=3000):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(stream=False), ASTFProgram(stream=False)
        for program in (client, server):
            program.set_keepalive_msg(pause_msec * 2, rx_mode=True)
        for number in range(2):
            client.send_msg(b"still there?")
            client.recv_msg(1)
            server.recv_msg(1)
            server.send_msg(b"yes")
            if number == 0:
                client.delay(pause_msec * 1000)
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=7001),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=7001)),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return UdpKeepalive()
