"""TCP as in 1988: no window scaling, no timestamps, no selective acknowledgments.

It tests old ends: no more than 64 KB go in a round trip. What must hold: the SYN carries the MSS alone.

Run it:  allosaur run tcp_without_options -d 10 --local
Tunables: mss (10 to 9216 bytes).
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


class TcpWithoutOptions:
    """The tunables tcp.do_rfc1323 and do_sack."""

    def get_profile(self, mss=536):
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
        info.tcp.do_rfc1323 = 0
        info.tcp.do_sack = 0
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
    return TcpWithoutOptions()
