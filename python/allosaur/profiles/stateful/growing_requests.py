"""A program with a decision: requests grow until they are long enough, then it says goodbye.

It tests nothing of its own. It shows variables, comparisons and jumps; the server counts with the client.

Run it:  allosaur run growing_requests -t rounds=20 -d 10 --local
Tunables: rounds (how often, 1 or more).
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


class GrowingRequests:
    """add_var() and jmp_lt() on both sides."""

    def get_profile(self, rounds=5):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        for program in (client, server):
            program.set_var("round", 0)
            program.set_label("again")
            if program is client:
                program.send(b"more")
                program.recv(4, clear=True)
            else:
                program.recv(4, clear=True)
                program.send(b"here")
            program.add_var("round", 1)
            program.jmp_lt("round", "again", rounds)
        client.send(b"bye!")
        server.recv(4)
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=7003),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=7003)),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return GrowingRequests()
