"""Real HTTP/1.1: a page with its objects on one connection, and an API, each answer judged.

It tests what understands HTTP, such as proxies: requests that follow each other on a connection, chunks,
an upload, an error that is expected. What must hold: http_failures does not appear.

Run it:  allosaur run http_pages -d 10 --local
Tunables: rate (connections a second at multiplier 1), object (bytes of an image), think (seconds between
requests), tls (1: over TLS, on port 443).
"""

from allosaur import (
    TLS,
    ASTFAssociationRule,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
    HTTPClient,
    HTTPRequest,
    HTTPRoute,
    HTTPServer,
)

HOST = "site.example"


class HttpPages:
    """A browser's page, and calls of an API of which one is refused."""

    def get_profile(self, rate=1, object=20_000, think=0.0, tls=0):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client = HTTPClient(
            [
                "/index.html",
                HTTPRequest("/image/1.png", body_bytes=object),
                HTTPRequest("/api/orders", "POST", body='{"article": 1}'.ljust(200), status=201),
                HTTPRequest("/api/orders/0", status=404),
            ],
            host=HOST,
            think=float(think),
        )
        server = HTTPServer(
            [
                HTTPRoute("/index.html", size=8_000, body="<p>text</p>", chunk=2_000),
                HTTPRoute("/image/*", size=object, headers={"Content-Type": "image/png"}),
                HTTPRoute("/api/orders", status=201, body='{"order": 1}'),
            ]
        )
        port = 443 if int(tls) else 80
        ours = TLS(server_name=HOST) if int(tls) else None
        template = ASTFTemplate(
            ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=port, cps=rate, tls=ours),
            ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=port), tls=ours),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return HttpPages()
