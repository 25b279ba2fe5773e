"""TCP's segment size and first window, for all and for one template.

It tests devices with small packets, or a slow start. The server sends segments of mss bytes, and as many as
initwnd before the first acknowledgment.

Run it:  allosaur run tcp_segments -t mss=536,initwnd=2 -d 10 --local
Tunables: mss (10 to 9216 bytes), initwnd (1 to 20 segments).
"""

from allosaur import (
    ASTFGlobalInfo,
    ASTFGlobalInfoPerTemplate,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)


class TcpSegments:
    """The tunables tcp.mss and tcp.initwnd."""

    def get_profile(self, mss=1200, initwnd=4):
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
        info.tcp.mss = mss
        own = ASTFGlobalInfoPerTemplate()
        own.tcp.mss = mss
        own.tcp.initwnd = initwnd
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=server, glob_info=own),
        )
        return ASTFProfile(
            default_ip_gen=ip_gen,
            templates=template,
            default_c_glob_info=info,
            default_s_glob_info=info,
        )


def register():
    return TcpSegments()
