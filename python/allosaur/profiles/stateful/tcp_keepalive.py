"""TCP's timers for silence: how long until it asks whether the other end lives, and gives up.

It tests devices that drop silent connections: the questions keep them known. What must hold: tcps_keepdrops
stays zero while both ends live.

Run it:  allosaur run tcp_keepalive -t idle=10 -d 10 --local
Tunables: idle, interval, handshake (seconds, 2 to 65533), silence (seconds that both ends are silent).
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


class TcpKeepalive:
    """The tunables tcp.keepidle, keepintvl and keepinit."""

    def get_profile(self, idle=2, interval=2, handshake=5, silence=10):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"hello")
        client.recv(5)
        client.delay(silence * 1_000_000)
        server.recv(5)
        server.send(b"hello")
        server.wait_for_peer_close()
        info = ASTFGlobalInfo()
        info.tcp.keepidle = idle
        info.tcp.keepintvl = interval
        info.tcp.keepinit = handshake
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
    return TcpKeepalive()
