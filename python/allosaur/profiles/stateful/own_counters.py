"""Counters of your own: how many answers there were, and how long the client waited for them.

It tests nothing of its own. user_counter_A counts answers and user_counter_B adds up the time, so B / A is
the mean.

Run it:  allosaur run own_counters -t work_msec=200 -d 10 --local
Tunables: work_msec (how long the server works on an answer, in milliseconds).
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


class OwnCounters:
    """add_stats() and add_tick_stats()."""

    def get_profile(self, work_msec=50):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.set_tick_var("asked")
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        client.recv(1000)
        client.add_stats("A", 1)
        client.add_tick_stats("B", "asked")
        server.recv(18)
        server.delay(work_msec * 1000)
        server.send(b"HTTP/1.1 200 OK\r\n\r\n", size=1000, fill="*")
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return OwnCounters()
