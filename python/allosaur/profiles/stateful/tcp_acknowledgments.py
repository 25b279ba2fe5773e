"""When TCP acknowledges, and when it sends: delayed acknowledgments, Nagle, push.

It tests traffic with many acknowledgments or few. no_delay is 1 for no Nagle, 2 for a push with each
segment, 3 for both; every bytes_to_ack bytes are acknowledged at once.

Run it:  allosaur run tcp_acknowledgments -t ack_msec=40 -d 10 --local
Tunables: ack_msec (20 to 50000), no_delay (0 to 3), bytes_to_ack (0 to 65533).
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


class TcpAcknowledgments:
    """The tunables tcp.delay_ack_msec, no_delay and no_delay_counter."""

    def get_profile(self, ack_msec=200, no_delay=1, bytes_to_ack=2920):
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
        info.tcp.delay_ack_msec = ack_msec
        info.tcp.no_delay = no_delay
        info.tcp.no_delay_counter = bytes_to_ack
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
    return TcpAcknowledgments()
