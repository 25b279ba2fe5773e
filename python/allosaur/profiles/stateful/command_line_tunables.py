"""Tunables in the style of a command line, read with argparse: for profiles with many of them.

It tests nothing new: HTTP of any size. It shows how a profile takes tunables as words, which it can check
and explain by itself.

Run it:  allosaur run command_line_tunables -t size=100 -d 10 --local
Tunables: size (bytes of the response), port (of the server).
"""

import argparse

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


class CommandLineTunables:
    """The parameter `tunables` is a list of words."""

    def get_profile(self, tunables, **kwargs):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="HTTP of any size")
        parser.add_argument("--size", type=int, default=10_000, help="bytes of the response")
        parser.add_argument("--port", type=int, default=80, help="of the server")
        options = parser.parse_args(tunables)

        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        client.recv(options.size)
        server.recv(18)
        server.send(b"HTTP/1.1 200 OK\r\n\r\n", size=options.size, fill="*")
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=options.port),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(options.port)),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return CommandLineTunables()
