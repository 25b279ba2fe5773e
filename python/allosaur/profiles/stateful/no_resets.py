"""Silence in place of resets: packets that belong to nothing get no answer.

It tests ports that share their addresses with other hosts, such as a Linux beside: a reset would break its
connections. Frames also go by the port's own addresses, not by those that they answer.

Run it:  allosaur run no_resets -t blackhole=1 -d 10 --local
Tunables: blackhole (0 resets always, 1 for SYNs only, 2 never).
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


class NoResets:
    """The tunables tcp.blackhole and ip.dont_use_inbound_mac."""

    def get_profile(self, blackhole=2):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        client.recv(32_000)
        server.recv(18)
        server.send(b"HTTP/1.1 200 OK\r\n\r\n", size=32_000, fill="*")
        info = ASTFGlobalInfo()
        info.tcp.blackhole = blackhole
        info.ip.dont_use_inbound_mac = 1
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(
            default_ip_gen=ip_gen,
            templates=template,
            default_c_glob_info=info,
            default_s_glob_info=info,
        )


def register():
    return NoResets()
