"""A telephone call by RTP: 50 messages a second each way, 160 bytes of sound in each.

It tests steady streams of small packets. What must hold: no message is lost, and they keep their distance.

Run it:  allosaur run rtp_call -t seconds=60 -d 10 --local
Tunables: seconds (the length of a call), calls (that begin in a second at multiplier 1).
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

HEADER = bytes.fromhex("80080001000000a000000001")


class RtpCall:
    """Both sides send by themselves every 20 ms."""

    def get_profile(self, seconds=5, calls=1):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(stream=False), ASTFProgram(stream=False)
        server.recv_msg(1)
        for program in (client, server):
            program.set_var("left", seconds * 50)
            program.set_label("again")
            program.send_msg(HEADER, size=len(HEADER) + 160, fill=b"\xd5")
            program.delay(20_000)
            program.jmp_nz("left", "again")
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=5004, cps=calls),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=5004)),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return RtpCall()
