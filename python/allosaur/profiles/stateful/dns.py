"""Names: a question and an answer over UDP, as dnsmasq gave it.

It tests many short flows. What must hold: as many answers as questions.

Run it:  allosaur run dns -t rate=1000 -d 10 --local
Tunables: rate (questions a second at multiplier 1), name (eleven letters that are asked for).
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


class Dns:
    """A capture with another name in it."""

    def get_profile(self, rate=10, name="another"):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client = ASTFProgram(file="dns.pcap", side="c")
        server = ASTFProgram(file="dns.pcap", side="s")
        for program in (client, server):
            program.replace_pattern("example", f"{name:.7}".ljust(7, "x"))
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=53, cps=rate),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=53)),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return Dns()
