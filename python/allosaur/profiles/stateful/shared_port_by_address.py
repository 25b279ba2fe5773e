"""One port, two services: the server tells them by the address that the client connects to.

It tests virtual hosts, each with addresses of its own. What must hold: each address answers as its service.

Run it:  allosaur run shared_port_by_address -d 10 --local
Tunables: size (bytes of an answer of the first service; the second sends twice as much).
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


class SharedPortByAddress:
    """Two templates on port 80 for two ranges of servers."""

    def get_profile(self, size=1000):
        """Return the profile."""
        templates = []
        for number in (0, 1):
            first, last = f"48.0.{number}.1", f"48.0.{number}.254"
            ip_gen = ASTFIPGen(
                dist_client=ASTFIPGenDist([f"16.0.{number}.1", f"16.0.{number}.254"]),
                dist_server=ASTFIPGenDist([first, last]),
            )
            client, server = ASTFProgram(), ASTFProgram()
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            client.recv(size * (number + 1))
            server.recv(18)
            server.send(b"HTTP/1.1 200 OK\r\n\r\n", size=size * (number + 1), fill="*")
            rule = ASTFAssociationRule(port=80, ip_start=first, ip_end=last)
            templates.append(
                ASTFTemplate(
                    client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
                    server_template=ASTFTCPServerTemplate(program=server, assoc=rule),
                )
            )
        return ASTFProfile(default_ip_gen=ip_gen, templates=templates)


def register():
    return SharedPortByAddress()
