"""Real HTTP/1.1 or HTTPS: new connections at a rate to one URL, each with requests that are judged.

It tests web servers, and what stands before them: the profile of `allosaur http`. What must hold:
http_failures does not appear, and connections are offered at the rate that was asked for.

Run it:  allosaur run http_load -t url=http://48.0.0.1/index.html -d 10 --local
Tunables: url (http or https, with the address of the server), rate (requests a second at multiplier 1),
requests (of a connection), clients (their network), method, headers (a list of NAME: VALUE), body, size (of
the body in bytes), status (what is expected), timeout (seconds, 0: none), version (of TLS), host (name of
the server), resume (share of TLS sessions), response (bytes that our own server answers).
"""

import ipaddress
from urllib.parse import urlsplit

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


class HttpLoad:
    """One URL, asked for again and again."""

    def get_profile(
        self, url="http://48.0.0.1/", rate=10.0, requests=1, clients="16.0.0.0/24", method="GET", headers=(),
        body=None, size=None, status=None, timeout=0.0, version=None, host=None, resume=0.0, response=1_000,
    ):  # fmt: skip
        """Return the profile."""
        parts = urlsplit(str(url))
        network = ipaddress.ip_network(str(clients), strict=False)
        hosts = [str(network[1]), str(network[-2])] if network.num_addresses > 3 else [str(network[0])] * 2
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(hosts), dist_server=ASTFIPGenDist([str(parts.hostname)] * 2)
        )
        path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        lines = [tuple(part.strip() for part in line.split(":", 1)) for line in headers]
        request = HTTPRequest(path, method, lines, body, size, status)
        client = HTTPClient(request, host, requests, timeout=timeout or None)
        server = HTTPServer(HTTPRoute(size=response))
        is_tls = parts.scheme == "https"
        port = parts.port or (443 if is_tls else 80)
        asks = TLS(str(version) if version else None, server_name=host, resume=resume) if is_tls else None
        template = ASTFTemplate(
            ASTFTCPClientTemplate(ip_gen, program=client, port=port, cps=rate / requests, tls=asks),
            ASTFTCPServerTemplate(server, ASTFAssociationRule(port=port), tls=TLS() if is_tls else None),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return HttpLoad()
