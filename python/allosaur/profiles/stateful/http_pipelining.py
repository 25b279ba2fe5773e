"""HTTP pipelining: all requests leave at once, the answers come one after the other.

It tests devices that expect one answer for one request. Sends do not wait for acknowledgments here. What
must hold: all bytes of all answers arrive.

Run it:  allosaur run http_pipelining -t depth=8 -d 10 --local
Tunables: depth (requests under way), size (bytes of an answer).
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

ASK = b"GET /next HTTP/1.1\r\nHost: site.example\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"


class HttpPipelining:
    """A client that does not wait between requests."""

    def get_profile(self, depth=5, size=4096):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.set_send_blocking(False)
        server.set_send_blocking(False)
        for _ in range(depth):
            client.send(ASK)
            server.recv(len(ASK))
            server.send(ANSWER, size=size, fill="*")
        client.recv(depth * size)
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return HttpPipelining()
