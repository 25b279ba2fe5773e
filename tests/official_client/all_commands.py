"""A stateful profile with each command, each tunable and each way to find a server, for both clients."""

from trex.astf.api import (
    ASTFAssociation,
    ASTFAssociationRule,
    ASTFCmdNoClose,
    ASTFCmdRecv,
    ASTFCmdSend,
    ASTFGlobalInfo,
    ASTFGlobalInfoPerTemplate,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFIPGenGlobal,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)

WHOLE = {
    "tcp": {
        "mss": 1400,
        "initwnd": 2,
        "rxbufsize": 8192,
        "txbufsize": 4096,
        "rexmtthresh": 4,
        "do_rfc1323": 0,
        "keepinit": 5,
        "keepidle": 6,
        "keepintvl": 7,
        "blackhole": 1,
        "delay_ack_msec": 100,
        "no_delay": 1,
        "no_delay_counter": 100,
        "do_sack": 0,
        "do_ecn": 1,
        "cc_algo": 1,
        "reass_maxqlen": 10,
    },
    "ip": {"tos": 4, "ttl": 5, "dont_use_inbound_mac": 1},
    "ipv6": {"enable": 1, "src_msb": "ff02::", "dst_msb": "2001:db8::"},
    "scheduler": {"rampup_sec": 9},
}
OF_TEMPLATE = {
    "tcp": {
        "mss": 800,
        "initwnd": 3,
        "rxbufsize": 2048,
        "txbufsize": 2049,
        "no_delay": 2,
        "no_delay_counter": 5,
    },
    "ip": {"tos": 2, "ttl": 8},
    "ipv6": {"enable": 1, "src_msb": "::1", "dst_msb": "::2"},
}


def tuned(info, sections):
    """Set all tunables."""
    for section, values in sections.items():
        for name, value in values.items():
            setattr(getattr(info, section), name, value)
    return info


def pools(client, server, **glob):
    """Pools of clients and servers."""
    return ASTFIPGen(
        glob=ASTFIPGenGlobal(**glob),
        dist_client=ASTFIPGenDist([f"{client}.0.0.1", f"{client}.0.0.254"], "seq"),
        dist_server=ASTFIPGenDist([f"{server}.0.0.1", f"{server}.0.255.254"], "rand", "seq"),
    )


def client_of_tcp():
    """Each command of TCP, and those of both protocols."""
    program = ASTFProgram()
    program.connect()
    program.set_send_blocking(False)
    program.set_send_blocking(True)
    program.send("GET / HTTP/1.1\r\n\r\n")
    program.set_var("n", 5)
    program.add_var("n", 2)
    program.set_tick_var("t")
    program.set_label("a")
    program.send(b"x", size=1000, fill="ab")
    program.send(b"x", size=900)
    for size, clear in ((100, True), (200, False), (300, False)):
        program.recv(size, clear)
    program.delay(10)
    program.delay_rand(5, 10.5)
    program.add_stats("B", 7)
    program.add_stats(3, 1)
    program.add_tick_stats(2, "t")
    program.add_tick_var("t", 1.5)
    program.jmp_nz("n", "a")
    program.jmp_dp("t", "a", 2)
    program.set_var("m", 1)
    for jump in ("lt", "gt", "eq", "ge", "le", "ne"):
        getattr(program, f"jmp_{jump}")("m", "a", 3)
    program.jmp("b")
    program.set_next_template("first")
    program.exec_template()
    program.set_label("b")
    program.send_chunk("abcdefghij", 3, 20)
    program.wait_for_peer_close()
    return program


def server_of_tcp():
    """Commands of a server."""
    program = ASTFProgram()
    program.accept()
    program.recv(18)
    program.send("x" * 100, 50)
    program.send(b"x", 1000, b"ab")
    program.reset()
    return program


def both_of_udp():
    """Each command of UDP."""
    client = ASTFProgram(stream=False, addon="latency")
    client.set_keepalive_msg(100, True)
    client.set_keepalive_msg(100)
    client.send_msg("hi", 20)
    client.recv_msg(2)
    client.recv_msg(3, True)
    client.recv_msg(1)
    client.close_msg()
    server = ASTFProgram(stream=False)
    server.recv_msg(1)
    server.send_msg(b"\0\1", 3, b"\2")
    return client, server


class AllCommands:
    """The profile."""

    def get_profile(self, tunables, **kwargs):
        """Four templates in two groups."""
        one, other = pools("16", "48"), pools("17", "49", ip_offset="2.0.0.0", ip_offset_server="0.1.0.0")
        info = tuned(ASTFGlobalInfoPerTemplate(), OF_TEMPLATE)
        asks, answers = both_of_udp()
        by_bytes = ASTFAssociationRule(port=81, ip_start="48.0.0.1", ip_end="48.0.0.9", l7_map=[0, 2])
        by_value = {"offset": [0, 1], "value": [1, 2], "mask": [255, 15]}
        rules = [
            ASTFAssociationRule(port=81, ip_start="49.0.0.1", ip_end="49.0.0.9", l7_map=by_value, assoc_id=9),
            ASTFAssociationRule(port=82),
        ]
        written = [ASTFCmdSend(b"GET"), ASTFCmdRecv(5)]
        heard = [ASTFCmdRecv(3), ASTFCmdSend(b"hello"), ASTFCmdNoClose()]
        sides = [
            (
                ASTFTCPClientTemplate(
                    one, program=client_of_tcp(), cps=2.5, limit=9, cont=True, glob_info=info
                ),
                ASTFTCPServerTemplate(server_of_tcp(), glob_info=info),
                "first",
            ),
            (
                ASTFTCPClientTemplate(one, program=asks, port=81, limit=3),
                ASTFTCPServerTemplate(answers, by_bytes),
                None,
            ),
            (
                ASTFTCPClientTemplate(other, program=asks, port=81),
                ASTFTCPServerTemplate(answers, ASTFAssociation(rules)),
                "second",
            ),
            (
                ASTFTCPClientTemplate(one, program=ASTFProgram(commands=written), port=83, cps=0),
                ASTFTCPServerTemplate(ASTFProgram(commands=heard), ASTFAssociationRule(83)),
                "first",
            ),
        ]
        return ASTFProfile(
            default_ip_gen=one,
            default_c_glob_info=tuned(ASTFGlobalInfo(), WHOLE),
            default_s_glob_info=tuned(ASTFGlobalInfo(), {"tcp": {"mss": 1300}}),
            templates=[ASTFTemplate(client, server, group) for client, server, group in sides],
        )


def register():
    """For the loaders."""
    return AllCommands()
