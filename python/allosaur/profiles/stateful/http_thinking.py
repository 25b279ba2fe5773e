"""HTTP with time to think: the server works on an answer, the user reads it.

It tests connections that are silent in between, with times that differ from one to the next. What must
hold: no timer of a device in between closes them.

Run it:  allosaur run http_thinking -t read_msec=2000 -d 10 --local
Tunables: work_msec and read_msec (the longest times of server and user, in milliseconds).
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

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world\n"


class HttpThinking:
    """Random delays on both sides."""

    def get_profile(self, work_msec=50, read_msec=500):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        for page in (b"/", b"/more"):
            ask = b"GET " + page + b" HTTP/1.1\r\nHost: site.example\r\n\r\n"
            client.send(ask)
            client.recv(len(ANSWER), clear=True)
            client.delay_rand(read_msec * 100, read_msec * 1000)
            server.recv(len(ask), clear=True)
            server.delay_rand(0, work_msec * 1000)
            server.send(ANSWER)
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return HttpThinking()
