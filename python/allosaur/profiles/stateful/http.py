"""HTTP, a connection for each request: 100 bytes ask, 32 KB answer. The usual benchmark.

It tests how many connections a second a device can take with a mean load of data on each. What must hold:
as many connections are closed as were opened, and no error counter grows.

Run it:  allosaur run http -t response=1024 -d 10 --local
Tunables: request (bytes, 60 or more), response (bytes, 100 or more), rate (connections a second at
multiplier 1).
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

ASK = b"GET / HTTP/1.1\r\nHost: site.example\r\nX-Fill: "
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"


class Http:
    """One connection, one request, one response."""

    def get_profile(self, request=100, response=32 * 1024, rate=1):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client = ASTFProgram()
        client.send(ASK, size=request, fill="x")
        client.recv(response)
        server = ASTFProgram()
        server.recv(request)
        server.send(ANSWER, size=response, fill="*")
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, cps=rate),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return Http()
