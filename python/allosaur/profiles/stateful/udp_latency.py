"""The way there and back, measured in the messages themselves: the add-on "latency".

It tests delay under load. Each message begins with a header that the client stamps and the server returns;
the template group has counters of its own for it (min_time, max_time, measure_cnt, total_time).

Run it:  allosaur run udp_latency -d 10 --local
Tunables: count (messages of a flow), gap_usec (between two, in microseconds).
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


class UdpLatency:
    """A loop of messages with the add-on."""

    def get_profile(self, count=100, gap_usec=10_000):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client = ASTFProgram(stream=False, addon="latency")
        server = ASTFProgram(stream=False, addon="latency")
        for program in (client, server):
            program.set_var("left", count)
            program.set_label("again")
            if program is server:
                program.recv_msg(1, clear=True)
            program.send_msg(b"", size=64, fill=".")
            if program is client:
                program.recv_msg(1, clear=True)
                program.delay(gap_usec)
            program.jmp_nz("left", "again")
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=7002),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=7002)),
            tg_name="latency",
        )
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def register():
    return UdpLatency()
