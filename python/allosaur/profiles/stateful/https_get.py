"""HTTP over TLS: a connection and a handshake for each request, both ends real.

It tests how many handshakes a second a device can take that looks into them: clients say a name (SNI) and
a protocol (ALPN), servers show a certificate that is made when the profile starts. What must hold: a
handshake for each connection, and no error counter grows.

Run it:  allosaur run https_get -t resume=0.5 -d 10 --local
Tunables: version (1.2 or 1.3; both without), resume (share of connections that resume a session, 0 to 1),
response (bytes, 100 or more), rate (connections a second at multiplier 1).
"""

from allosaur import (
    TLS,
    ASTFAssociationRule,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)

NAME = "site.example"
ASK = b"GET / HTTP/1.1\r\nHost: site.example\r\nConnection: close\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"


class HttpsGet:
    """One connection, one handshake, one request, one response."""

    def get_profile(self, version=None, resume=0.0, response=32 * 1024, rate=1):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        version = None if version is None else str(version)
        client = ASTFProgram()
        client.send(ASK)
        client.recv(response)
        server = ASTFProgram()
        server.recv(len(ASK))
        server.send(ANSWER, size=response, fill="*")
        asks = TLS(version=version, server_name=NAME, alpn=["http/1.1"], resume=resume)
        answers = TLS(server_name=NAME, alpn=["http/1.1"])
        template = ASTFTemplate(
            ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=443, cps=rate, tls=asks),
            ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=443), tls=answers),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return HttpsGet()
