"""A request and its response, each on a TCP connection of its own: a profile to begin with.

Run it:  allosaur run NAME.py -m 10 -d 10 --local
Tunables: request (bytes), response (bytes), rate (connections a second at multiplier 1),
port (of the server).
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


class Profile:
    """One connection, one request, one response."""

    def get_profile(self, request=100, response=1000, rate=1, port=80):
        """Return the profile: what both sides say, who they are, and how often."""
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"?", size=request, fill="?")
        client.recv(response)
        server.recv(request)
        server.send(b"!", size=response, fill="!")

        addresses = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.0.254"]),
        )
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=addresses, cps=rate, port=port),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port)),
        )
        return ASTFProfile(default_ip_gen=addresses, templates=template)


def register():
    """Return the profile; `allosaur run` asks it for its templates."""
    return Profile()
