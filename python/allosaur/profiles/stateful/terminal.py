"""A terminal session: a few bytes at a time, with pauses, echoed by the server.

It tests small segments, and what Nagle's algorithm does with them. What must hold: each key is echoed
before the next one is typed.

Run it:  allosaur run terminal -t pause_msec=20 -d 10 --local
Tunables: pause_msec (between two keys, in milliseconds).
"""

from allosaur import (
    ASTFAssociationRule,
    ASTFGlobalInfoPerTemplate,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)

LINE = "ls -l\n"


class Terminal:
    """Byte by byte, there and back."""

    def get_profile(self, pause_msec=100):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        for key in LINE:
            client.send(key)
            client.recv(1)
            client.delay(pause_msec * 1000)
            server.recv(1)
            server.send(key)
        server.send_chunk("total 0\r\n$ ", chunk_size=3, delay_usec=1000)
        client.recv(11)
        info = ASTFGlobalInfoPerTemplate()
        info.tcp.no_delay = 1
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=23, glob_info=info),
            server_template=ASTFTCPServerTemplate(
                program=server,
                assoc=ASTFAssociationRule(port=23),
                glob_info=info,
            ),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return Terminal()
