"""Uploads: small requests and large bodies from the client, short answers.

It tests the way from client to server, which most profiles leave nearly empty. The body is described, not
sent to the server byte by byte.

Run it:  allosaur run http_upload -t size=10000000 -d 10 --local
Tunables: size (bytes of an upload).
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

ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"


class HttpUpload:
    """A POST."""

    def get_profile(self, size=1_000_000):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        head = b"POST /files HTTP/1.1\r\nHost: site.example\r\nContent-Length: %d\r\n\r\n" % size
        client = ASTFProgram()
        client.send(head, size=len(head) + size, fill="0123456789abcdef")
        client.recv(len(ANSWER))
        server = ASTFProgram()
        server.recv(len(head) + size)
        server.send(ANSWER)
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return HttpUpload()
