"""The server closes first, as an old web server does, and the client waits for it.

It tests half-closed connections: the server's FIN comes with the last of the answer. What must hold: both
ends close, and neither resets.

Run it:  allosaur run server_closes -d 10 --local
Tunables: size (bytes of the answer).
"""

from allosaur import (
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)


class ServerCloses:
    """wait_for_peer_close() on the client."""

    def get_profile(self, size=20_000):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        client.recv(size)
        client.wait_for_peer_close()
        server.recv(18)
        server.send(b"HTTP/1.0 200 OK\r\n\r\n", size=size, fill="*")
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return ServerCloses()
