"""Explicit congestion notification: clients ask for it, servers agree when asked.

It tests devices that mark in place of dropping. What must hold: tcps_ecn_shs counts the handshakes, and
tcps_ecn_ce what was marked.

Run it:  allosaur run tcp_ecn -d 10 --local
Tunables: client and server (0 never, 1 asks, 2 agrees when asked).
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


class TcpEcn:
    """The tunable tcp.do_ecn."""

    def get_profile(self, client=1, server=2):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        asks, answers = ASTFProgram(), ASTFProgram()
        asks.send(b"GET / HTTP/1.1\r\n\r\n")
        asks.recv(32_000)
        answers.recv(18)
        answers.send(b"HTTP/1.1 200 OK\r\n\r\n", size=32_000, fill="*")
        sides = [ASTFGlobalInfo(), ASTFGlobalInfo()]
        sides[0].tcp.do_ecn = client
        sides[1].tcp.do_ecn = server
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=asks, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=answers),
        )
        return ASTFProfile(
            default_ip_gen=ip_gen,
            default_c_glob_info=sides[0],
            default_s_glob_info=sides[1],
            templates=template,
        )


def register():
    return TcpEcn()
