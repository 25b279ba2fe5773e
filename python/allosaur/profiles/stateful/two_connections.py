"""A connection that opens another: control and data, as in FTP.

It tests flows that belong together. The control connection asks, then a flow of the group "data" runs
between the same ends, then the control connection goes on. What must hold: for each control flow there is
one data flow.

Run it:  allosaur run two_connections -t size=1000000 -d 10 --local
Tunables: size (bytes of the file).
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


class TwoConnections:
    """exec_template() in the control program."""

    def get_profile(self, size=100_000):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.set_next_template("data")
        client.send(b"RETR file\r\n")
        client.recv(13)
        client.exec_template()
        client.send(b"QUIT\r\n")
        client.recv(9)
        server.recv(11)
        server.send(b"150 opening\r\n")
        server.recv(6)
        server.send(b"221 bye\r\n")
        getter, giver = ASTFProgram(), ASTFProgram()
        getter.recv(size)
        giver.accept()
        giver.send(b"file", size=size, fill="file")
        templates = [
            ASTFTemplate(
                client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=21),
                server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=21)),
                tg_name="control",
            ),
            # Flows of this one begin only when the other asks for them.
            ASTFTemplate(
                client_template=ASTFTCPClientTemplate(program=getter, ip_gen=ip_gen, port=20, cps=None),
                server_template=ASTFTCPServerTemplate(program=giver, assoc=ASTFAssociationRule(port=20)),
                tg_name="data",
            ),
        ]
        return ASTFProfile(default_ip_gen=ip_gen, templates=templates)


def register():
    return TwoConnections()
