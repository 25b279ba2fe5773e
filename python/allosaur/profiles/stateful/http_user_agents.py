"""HTTP of many browsers: each connection draws its User-Agent from a list; all have the same Host.

It tests devices that look into requests. What must hold: the log of a real server shows all of them, about
equally often. The list is drawn from by the server, so it takes a server that knows how (ours).

Run it:  allosaur run http_user_agents -t host=www.example -d 10 --local
Tunables: host (the Host of all requests), order ("rand" or "seq").
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

BROWSERS = ["Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0", "curl/8.9.1", "Wget/1.24", "Lynx/2.9.2"]


class HttpUserAgents:
    """A captured connection with other headers."""

    def get_profile(self, host="site.example", order="rand"):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client = ASTFProgram(file="http_get.pcap", side="c")
        server = ASTFProgram(file="http_get.pcap", side="s")
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        template.replace_header("Host", host)
        template.replace_header("User-Agent", BROWSERS, distribution=order)
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return HttpUserAgents()
