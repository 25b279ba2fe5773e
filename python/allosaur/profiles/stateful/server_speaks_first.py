"""Mail: the server greets as soon as it is connected, then both take turns.

It tests protocols in which the server has the first word. What must hold: the client sends nothing before
the greeting is there.

Run it:  allosaur run server_speaks_first -t size=100000 -d 10 --local
Tunables: size (bytes of the mail).
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


class ServerSpeaksFirst:
    """SMTP, with accept() on the server."""

    def get_profile(self, size=10_000):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        server.accept()
        server.send(b"220 mail.example ready\r\n")
        client.connect()
        client.recv(24)
        mail = b"Subject: test\r\n\r\n"
        for words, length, answer in (
            (b"HELO client.example\r\n", 0, b"250 mail.example\r\n"),
            (b"MAIL FROM:<a@client.example>\r\n", 0, b"250 ok\r\n"),
            (b"RCPT TO:<b@mail.example>\r\n", 0, b"250 ok\r\n"),
            (b"DATA\r\n", 0, b"354 go ahead\r\n"),
            (mail, size, b"250 queued\r\n"),
            (b"QUIT\r\n", 0, b"221 bye\r\n"),
        ):
            client.send(words, size=length, fill="x")
            client.recv(len(answer))
            server.recv(max(length, len(words)))
            server.send(answer)
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=25),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=25)),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return ServerSpeaksFirst()
