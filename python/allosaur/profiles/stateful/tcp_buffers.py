"""TCP's buffers: how much may be under way, and how much a receiver takes.

It tests throughput over a long way: no more than the smaller buffer goes in a round trip.

Run it:  allosaur run tcp_buffers -t receive=8192 -d 10 --local
Tunables: receive and send (bytes, 1 KiB to 1 GiB).
"""

from allosaur import (
    ASTFGlobalInfoPerTemplate,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)


class TcpBuffers:
    """The tunables tcp.rxbufsize and tcp.txbufsize."""

    def get_profile(self, receive=65_536, send=65_536):
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
        sides = [ASTFGlobalInfoPerTemplate(), ASTFGlobalInfoPerTemplate()]
        for info in sides:
            info.tcp.rxbufsize = receive
            info.tcp.txbufsize = send
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, glob_info=sides[0]),
            server_template=ASTFTCPServerTemplate(program=server, glob_info=sides[1]),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return TcpBuffers()
