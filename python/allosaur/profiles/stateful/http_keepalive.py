"""HTTP with connections that stay: many requests, one after the other, on each.

It tests long connections with little data. What must hold: for each connection the server gets as many
requests as the client sends, however many connections there are.

Run it:  allosaur run http_keepalive -t requests=100 -d 10 --local
Tunables: requests (on each connection), pause_usec (between two of them, in microseconds).
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

ASK = b"GET /status HTTP/1.1\r\nHost: site.example\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


class HttpKeepalive:
    """A loop on either side; both count from zero with each request."""

    def get_profile(self, requests=10, pause_usec=10_000):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client = ASTFProgram()
        client.set_var("left", requests)
        client.set_label("again")
        client.send(ASK)
        client.recv(len(ANSWER), clear=True)
        client.delay(pause_usec)
        client.jmp_nz("left", "again")
        server = ASTFProgram()
        server.set_var("left", requests)
        server.set_label("again")
        server.recv(len(ASK), clear=True)
        server.send(ANSWER)
        server.jmp_nz("left", "again")
        server.wait_for_peer_close()
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return HttpKeepalive()
