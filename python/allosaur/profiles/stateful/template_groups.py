"""Template groups: downloads and uploads are counted apart from each other.

It tests two kinds of load side by side. What must hold: each group has its rate and no errors; see
get_tg_names() and get_traffic_tg_stats().

Run it:  allosaur run template_groups -d 10 --local
Tunables: down and up (connections a second at multiplier 1).
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


class TemplateGroups:
    """Two templates with names."""

    def get_profile(self, down=3, up=1):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        templates = []
        for name, port, rate, sizes in (("down", 80, down, (100, 20_000)), ("up", 81, up, (20_000, 100))):
            client, server = ASTFProgram(), ASTFProgram()
            client.send(b"ask", size=sizes[0], fill="?")
            client.recv(sizes[1])
            server.recv(sizes[0])
            server.send(b"answer", size=sizes[1], fill="!")
            templates.append(
                ASTFTemplate(
                    client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=port, cps=rate),
                    server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port)),
                    tg_name=name,
                )
            )
        return ASTFProfile(default_ip_gen=ip_gen, templates=templates)


def register():
    return TemplateGroups()
