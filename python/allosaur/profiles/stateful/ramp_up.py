"""A slow beginning: the rate of new connections grows to the full over some seconds.

It tests devices that must learn or scale first. What must hold: no errors at any rate on the way up.

Run it:  allosaur run ramp_up -t seconds=20 -d 10 --local
Tunables: seconds (until the full rate, 3 to 60000).
"""

from allosaur import (
    ASTFGlobalInfo,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)


class RampUp:
    """The tunable scheduler.rampup_sec."""

    def get_profile(self, seconds=5):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        client.recv(1000)
        server.recv(18)
        server.send(b"HTTP/1.1 200 OK\r\n\r\n", size=1000, fill="*")
        info = ASTFGlobalInfo()
        info.scheduler.rampup_sec = seconds
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, cps=100),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template, default_c_glob_info=info)


def register():
    return RampUp()
