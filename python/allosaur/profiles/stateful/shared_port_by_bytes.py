"""One port, two services: the server tells them by the first bytes that the client sends.

It tests services that share a port. The server's template is found by the bytes at two places. What must
hold: readers get the long answer, writers the short one.

Run it:  allosaur run shared_port_by_bytes -d 10 --local
Tunables: readers and writers (connections a second at multiplier 1).
"""

from allosaur import (
    ASTFAssociationRule,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)


class SharedPortByBytes:
    """Two templates on port 80 with an l7_map."""

    def get_profile(self, readers=3, writers=1):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        templates = []
        for verb, size, rate in ((b"GET", 4000, readers), (b"PUT", 40, writers)):
            ask = verb + b" /page HTTP/1.1\r\n\r\n"
            client, server = ASTFProgram(), ASTFProgram()
            client.send(ask)
            client.recv(size)
            server.recv(len(ask))
            server.send(b"HTTP/1.1 200 OK\r\n\r\n", size=size, fill="*")
            templates.append(
                ASTFTemplate(
                    client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, cps=rate),
                    server_template=ASTFTCPServerTemplate(
                        program=server, assoc=ASTFAssociationRule(port=80, l7_map=[0, 1])
                    ),
                )
            )
        return ASTFProfile(default_ip_gen=ip_gen, templates=templates)


def register():
    return SharedPortByBytes()
