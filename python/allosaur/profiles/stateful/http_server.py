"""A web server: the files of a folder, sizes or answers by path, over HTTP/1.1 or HTTPS.

It tests clients of the web, and what stands before them: the profile of `allosaur http-server`. What must
hold: each path is answered as it says; what none fits gets 404, what is no HTTP is counted as http_failures.

Run it:  allosaur run http_server -t size=5000 -d 10 --local
Tunables: port, root (a folder whose files are served), size (of what is answered elsewhere; without a root
and routes 1,000), routes (a list of 'PATH status=N size=N delay=SECONDS chunk=N header=NAME:VALUE'), tls (1:
HTTPS), certificate and key (PEM files; without, one is made), rate (connections a second of clients of ours;
0: none).
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


class HttpServer:
    """Servers of the web, and a client of ours that looks in."""

    def get_profile(
        self, port=80, root=None, size=None, routes=(), tls=0, certificate=None, key=None, rate=1.0
    ):
        """Return the profile."""
        served = [HTTPRoute.parse(str(line)) for line in routes]
        served += HTTPRoute.files(str(root)) if root else []
        if size is not None or not served:
            served.append(HTTPRoute(size=int(1_000 if size is None else size)))
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        # Whatever a path is answered is right.
        client = HTTPClient(HTTPRequest("/", status=range(200, 600)))
        asks, answers = None, None
        if int(tls):
            asks, answers = TLS(), TLS(certificate=certificate, key=key) if certificate else TLS()
        # A template needs a rate, and without clients none of its flows begins.
        limit = None if float(rate) else 0
        template = ASTFTemplate(
            ASTFTCPClientTemplate(
                ip_gen, program=client, port=int(port), cps=float(rate) or 1, limit=limit, tls=asks
            ),
            ASTFTCPServerTemplate(HTTPServer(served), ASTFAssociationRule(port=int(port)), tls=answers),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return HttpServer()
