"""Elephant flows: a few connections that send as fast as TCP lets them, for a time.

It tests throughput. The limit holds the number of connections; sends do not wait for acknowledgments, and
buffers are large. What must hold: the rate of a connection is what window, round trip and loss permit.

Run it:  allosaur run elephants -t flows=4,seconds=30 -d 10 --local
Tunables: flows (connections in all), seconds (how long each sends), buffer (bytes of TCP's buffers).
"""

from allosaur import (
    ASTFGlobalInfoPerTemplate,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)


class Elephants:
    """Downloads without an end but time."""

    def get_profile(self, flows=1, seconds=10, buffer=512 * 1024):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client = ASTFProgram()
        client.send(b"more")
        client.wait_for_peer_close()
        server = ASTFProgram()
        server.set_send_blocking(False)
        server.recv(4)
        server.set_tick_var("began")
        server.set_label("again")
        server.send(b"", size=1_000_000, fill="*")
        server.jmp_dp("began", "again", seconds)
        info = ASTFGlobalInfoPerTemplate()
        info.tcp.rxbufsize = buffer
        info.tcp.txbufsize = buffer
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(
                program=client,
                ip_gen=ip_gen,
                cps=flows,
                limit=flows,
                glob_info=info,
            ),
            server_template=ASTFTCPServerTemplate(program=server, glob_info=info),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return Elephants()
