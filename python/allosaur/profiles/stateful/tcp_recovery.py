"""How TCP finds out about loss and what it does: CUBIC or NewReno, SACK, duplicate acknowledgments.

It tests behaviour over a bad link. What must hold: all bytes arrive; compare the time with other settings.

Run it:  allosaur run tcp_recovery -t cubic=0,sack=0 -d 10 --local
Tunables: cubic, sack (0 or 1), duplicates (acknowledgments until sending again, 1 to 10), segments (0 to
1000 out of order that are kept).
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


class TcpRecovery:
    """The tunables tcp.cc_algo, do_sack, rexmtthresh and reass_maxqlen."""

    def get_profile(self, cubic=1, sack=1, duplicates=3, segments=200):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        client.recv(1_000_000)
        server.recv(18)
        server.send(b"HTTP/1.1 200 OK\r\n\r\n", size=1_000_000, fill="*")
        info = ASTFGlobalInfo()
        info.tcp.cc_algo = cubic
        info.tcp.do_sack = sack
        info.tcp.rexmtthresh = duplicates
        info.tcp.reass_maxqlen = segments
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
    return TcpRecovery()
