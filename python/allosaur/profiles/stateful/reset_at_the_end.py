"""Connections that end with a reset in place of a handshake.

It tests how a device forgets connections that are torn down. What must hold: nothing of them is left.

Run it:  allosaur run reset_at_the_end -d 10 --local
Tunables: size (bytes of the answer before it).
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


class ResetAtTheEnd:
    """The client resets when it has all."""

    def get_profile(self, size=1000):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        client.recv(size)
        client.reset()
        server.recv(18)
        server.send(b"HTTP/1.1 200 OK\r\n\r\n", size=size, fill="*")
        server.wait_for_peer_close()
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return ResetAtTheEnd()
