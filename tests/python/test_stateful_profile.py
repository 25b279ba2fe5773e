"""The stateful profile language: what profiles become in the protocol, and what is refused."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    ASTFAssociation,
    ASTFAssociationRule,
    ASTFCapInfo,
    ASTFCmdDelay,
    ASTFError,
    ASTFGlobalInfo,
    ASTFGlobalInfoPerTemplate,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFIPGenGlobal,
    ASTFProfile,
    ASTFProfileLight,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
    EMUNamespaceKey,
    STLProfileError,
)


def pools(first: str = "16", second: str = "48", **glob: Any) -> ASTFIPGen:
    return ASTFIPGen(
        dist_client=ASTFIPGenDist([f"{first}.0.0.1", f"{first}.0.0.254"]),
        dist_server=ASTFIPGenDist([f"{second}.0.0.1", f"{second}.0.0.254"]),
        glob=ASTFIPGenGlobal(**glob),
    )


def template(
    client: ASTFProgram, server: ASTFProgram, ip_gen: ASTFIPGen | None = None, port: int = 80, **more: Any
) -> ASTFTemplate:
    return ASTFTemplate(
        ASTFTCPClientTemplate(program=client, ip_gen=ip_gen or pools(), port=port, **more),
        ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port)),
    )


def exchange(request: bytes = b"request", response: bytes = b"response") -> tuple[ASTFProgram, ASTFProgram]:
    client, server = ASTFProgram(), ASTFProgram()
    client.send(request)
    client.recv(len(response))
    server.recv(len(request))
    server.send(response)
    return client, server


def profile(*templates: ASTFTemplate, **more: Any) -> ASTFProfile:
    return ASTFProfile(default_ip_gen=pools(), templates=list(templates), **more)


def test_an_exchange_becomes_buffers_programs_and_pools() -> None:
    fields = profile(template(*exchange())).to_json()
    assert fields == {
        "buf_list": [base64.b64encode(text).decode() for text in (b"request", b"response")],
        "ip_gen_dist_list": [
            {
                "ip_start": f"{first}.0.0.1",
                "ip_end": f"{first}.0.0.254",
                "distribution": "seq",
                "dir": side,
                "ip_offset": "1.0.0.0",
            }
            for first, side in (("16", "c"), ("48", "s"))
        ],
        "program_list": [
            {"commands": [{"name": "tx", "buf_index": 0}, {"name": "rx", "min_bytes": 8}]},
            {"commands": [{"name": "rx", "min_bytes": 7}, {"name": "tx", "buf_index": 1}]},
        ],
        "templates": [
            {
                "client_template": {
                    "program_index": 0,
                    "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}},
                    "cluster": {},
                    "port": 80,
                    "cps": 1,
                },
                "server_template": {"program_index": 1, "assoc": [{"port": 80}]},
            }
        ],
        "tg_names": [],
    }


def test_what_is_the_same_is_there_once() -> None:
    same = [template(*exchange(), port=port) for port in (80, 81)]
    fields = profile(*same, template(*exchange(b"other"), pools("17"), port=82)).to_json()
    assert len(fields["buf_list"]) == 3
    assert len(fields["program_list"]) == 4
    assert [one["dir"] for one in fields["ip_gen_dist_list"]] == ["c", "s", "c"]
    assert [one["client_template"]["program_index"] for one in fields["templates"]] == [0, 0, 2]


def test_a_large_buffer_is_described() -> None:
    client = ASTFProgram()
    client.send(b"head", size=1 << 30, fill="*-")
    client.send(b"longer than its size", size=3, fill=b"x")
    server = ASTFProgram()
    server.recv((1 << 30) + 20)
    fields = profile(template(client, server)).to_json()
    assert fields["buf_list"] == [
        {"base": "aGVhZA==", "size": 1 << 30, "fill": "Ki0="},
        base64.b64encode(b"longer than its size").decode(),
    ]
    assert client.total_send_bytes == (1 << 30) + 20


def test_programs_are_compiled_without_being_changed() -> None:
    client, server = exchange()
    client.set_var("n", 3)
    client.set_label("again")
    client.delay(10)
    client.jmp_nz("n", "again")
    made = profile(template(client, server))
    assert made.to_json() == made.to_json()
    assert made.to_json()["program_list"][0]["commands"][-1] == {"name": "jmp_nz", "id": 0, "offset": -1}
    out = io.StringIO()
    client.dump(out, "prog_c")
    assert "prog_c[3] again: ASTFCmdDelay(usec=10)" in out.getvalue()


def test_variables_and_tick_variables_have_numbers_of_their_own() -> None:
    client, server = exchange()
    client.set_var("a", 1)
    client.set_tick_var("t")
    client.set_var("b", 2)
    client.add_tick_stats("D", "t")
    commands = profile(template(client, server)).to_json()["program_list"][0]["commands"]
    assert [command["id"] for command in commands[2:5]] == [0, 0, 1]
    assert commands[5] == {"name": "add_tick_stats", "stats_id": 3, "var_id": 0}


def test_template_groups_are_numbered_from_one() -> None:
    client, server = exchange()
    client.set_next_template("second")
    client.exec_template()
    one = template(client, server)
    one.tg_name = "first"
    others = [template(*exchange(), port=port) for port in (81, 82, 83)]
    others[1].tg_name, others[2].tg_name = "second", "first"
    fields = profile(one, *others).to_json()
    assert fields["tg_names"] == ["first", "second"]
    assert [entry.get("tg_id") for entry in fields["templates"]] == [1, None, 2, 1]
    assert fields["program_list"][0]["commands"][2] == {"name": "set_template", "tg_id": 2}


def test_limits_and_cores_of_a_client() -> None:
    limited = template(*exchange(), cps=2.5, limit=10, cont=True, core_base=3)
    fields = profile(limited).to_json()["templates"][0]["client_template"]
    assert {name: fields[name] for name in ("cps", "limit", "cont", "core_base")} == {
        "cps": 2.5,
        "limit": 10,
        "cont": True,
        "core_base": 3,
    }


def test_tunables_have_names_and_ranges() -> None:
    info = ASTFGlobalInfo()
    info.tcp.mss = 1400
    info.tcp.do_sack = False
    info.ipv6.src_msb = "2001:db8::"
    assert (info.tcp.mss, info.tcp.do_sack) == (1400, 0)
    fields = profile(template(*exchange()), default_c_glob_info=info).to_json()
    assert fields["c_glob_info"] == {
        "ipv6": {"src_msb": [0x20, 0x01, 0x0D, 0xB8, *[0] * 12]},
        "tcp": {"mss": 1400, "do_sack": 0},
    }


TABLE = Path(__file__).resolve().parents[2] / "crates" / "engine" / "src" / "template" / "tunables.rs"
ROW = re.compile(r'\("(\w+)", "(\w+)"\), \(([^,]+), ([^)]+)\)')


def ranges() -> list[tuple[str, int, int]]:
    """The tunables that are numbers, as the server has them: each by its path, with its ends."""
    rows = ROW.findall(TABLE.read_text())
    assert len(rows) == 23, "the table has another form now"
    found = []
    for section, name, *ends in rows:
        low, high = (int(base) << int(shift or 0) for base, _, shift in (end.partition("<<") for end in ends))
        found.append((f"{section}.{name}", low, high))
    return found


@pytest.mark.parametrize(("path", "low", "high"), ranges())
def test_a_tunable_out_of_range_is_refused(path: str, low: int, high: int) -> None:
    section, name = path.split(".")
    info = ASTFGlobalInfo()
    for value in (low, high):
        setattr(getattr(info, section), name, value)
        assert info.to_json()[section][name] == value
    for value in (low - 1, high + 1, "7"):
        with pytest.raises(ASTFError, match=f"ASTFGlobalInfo.{section}: {name} is .*{low} to {high}"):
            setattr(getattr(info, section), name, value)
    assert info.to_json()[section][name] == high


def test_tunables_that_are_not_there() -> None:
    info = ASTFGlobalInfoPerTemplate()
    with pytest.raises(ASTFError, match="no tunable 'keepidle', there are: mss"):
        info.tcp.keepidle = 5
    with pytest.raises(ASTFError, match="no section 'scheduler', there are: tcp, ip, ipv6"):
        info.scheduler.rampup_sec = 5
    with pytest.raises(ASTFError, match="is a section"):
        info.tcp = 5
    with pytest.raises(ASTFError, match="IPv6 address"):
        info.ipv6.dst_msb = "48.0.0.1"
    assert not hasattr(info, "nothing")
    assert info.to_json() == {}


def looping(build: Callable[[ASTFProgram], object]) -> ASTFProfile:
    client, server = exchange()
    build(client)
    return profile(template(*exchange(), port=90), template(client, server))


def circle(program: ASTFProgram) -> None:
    program.set_var("n", 1)
    program.set_label("here")
    program.add_var("n", 1)
    program.jmp("here")


REFUSED: dict[str, tuple[Callable[[ASTFProgram], object], str]] = {
    "a label that is not set": (
        lambda program: program.jmp("end"),
        r"templates\[1\], the client's program, command 2 \(jmp_cmp\): label 'end' is not set",
    ),
    "a variable that is not set": (
        lambda program: program.add_var("n", 1),
        r"command 2 \(add_var\): variable 'n' is not set: call set_var\(\)",
    ),
    "a tick variable that is not set": (
        lambda program: program.add_tick_stats(0, "t"),
        r"call set_tick_var\(\)",
    ),
    "a template group that is not there": (
        lambda program: program.set_next_template("nobody"),
        r"command 2 \(set_template\): no template has the group 'nobody'",
    ),
    "a command of UDP": (lambda program: program.send_msg(b"x"), r"command 2 \(tx_msg\): .* for UDP"),
    "a circle without a wait": (circle, r"command 3 \(add_var\) begins a circle"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_program_that_cannot_run_is_refused(name: str) -> None:
    build, words = REFUSED[name]
    with pytest.raises(ASTFError, match=words):
        looping(build).to_json()


def test_a_circle_that_waits_is_no_error() -> None:
    def build(program: ASTFProgram) -> None:
        program.set_label("again")
        program.delay(1000)
        program.jmp("again")

    commands = looping(build).to_json()["program_list"][2]["commands"]
    assert commands[-1] == {"name": "jmp_cmp", "offset": -1}


def programs() -> ASTFProgram:
    return ASTFProgram()


REFUSED_AT_ONCE: dict[str, tuple[Callable[[], object], str]] = {
    "text": (lambda: programs().send("häuser"), "not ASCII"),
    "nothing": (lambda: programs().send(b""), "nothing to send"),
    "numbers": (lambda: programs().send(5), "give bytes or text"),  # type: ignore[arg-type]
    "negative": (lambda: programs().recv(-1), "bytes is -1, give 0 to"),
    "delay": (lambda: programs().delay(-1), "usec is -1"),
    "long delay": (lambda: programs().delay(1 << 32), "usec is 4294967296"),
    "swapped": (lambda: programs().delay_rand(5, 1), "swap them"),
    "operator": (lambda: programs().jmp_cmp("n", "x", "<", 1), "cmp_op is '<', give one of lt"),
    "counter": (lambda: programs().add_stats("E", 1), "give 0 to 3 or 'A' to 'D'"),
    "variable": (lambda: programs().set_var(5, 1), "give 0 to 4"),
    "twice": (lambda: [(one := programs()).set_label("a"), one.set_label("a")], "set twice"),
    "side": (lambda: ASTFProgram(side="x"), "side is 'x'"),
    "addon": (lambda: ASTFProgram(addon="tls"), "give one of: latency"),
    "udp_mtu": (lambda: ASTFProgram(udp_mtu=42), "udp_mtu is 42, give 43"),
    "no range": (lambda: ASTFIPGenDist(["16.0.0.1"]), "the first and the last"),
    "empty pool": (lambda: ASTFIPGenDist(["16.0.0.2", "16.0.0.1"]), "is empty, 16.0.0.2 comes after"),
    "address": (lambda: ASTFIPGenDist(["16.0.0", "16.0.0.1"]), "IPv4 address"),
    "distribution": (lambda: ASTFIPGenDist(["1.0.0.0", "1.0.0.1"], "all"), "give 'seq' or 'rand'"),
    "per core": (lambda: ASTFIPGenDist(["1.0.0.0", "1.0.0.1"], "seq", "x"), "per_core_distribution"),
    "no pool": (ASTFIPGenDist, "ip_range is missing, give it, or emulation"),
    "emulation": (lambda: ASTFIPGenDist(emulation=7), "give an EMUNamespaceKey, or a dictionary"),
    "no port": (lambda: ASTFIPGenDist(emulation={"tci": [5]}), "emulation has no 'vport'"),
    "odd key": (lambda: ASTFIPGenDist(emulation={"vport": 0, "vlan": 5}), "give vport, tci, tpid only"),
    "port's number": (lambda: ASTFIPGenDist(emulation={"vport": "0"}), "is '0', give a whole number"),
    "three tags": (lambda: ASTFIPGenDist(emulation={"vport": 0, "tci": [1, 2, 3]}), "a list of up to 2"),
    "tag": (lambda: ASTFIPGenDist(emulation={"vport": 0, "tci": 4096}), "is 4096, give 0 to 4095"),
    "ready": (lambda: ASTFIPGenDist(emulation={"vport": 0}, ready_min=0), "ready_min is 0, give 1 to"),
    "two pools": (
        lambda: ASTFIPGenDist(["1.0.0.0", "1.0.0.1"], emulation={"vport": 0}),
        "leave one of the two out",
    ),
    "emulated servers": (
        lambda: ASTFIPGen(
            ASTFIPGenDist(["1.0.0.0", "1.0.0.1"]), ASTFIPGenDist(emulation={"vport": 0, "tci": 3})
        ),
        "emulated clients of port 0 cannot be dist_server",
    ),
    "port": (lambda: ASTFAssociationRule(port=0), "port is 0, give 1 to 65535"),
    "half a range": (lambda: ASTFAssociationRule(ip_start="1.1.1.1"), "both ip_start and ip_end"),
    "offsets": (lambda: ASTFAssociationRule(l7_map=[1, 1]), "growing order"),
    "many offsets": (lambda: ASTFAssociationRule(l7_map=list(range(9))), "1 to 8 in growing order"),
    "map": (lambda: ASTFAssociationRule(l7_map={"value": [1]}), "l7_map is"),
    "no rules": (lambda: ASTFAssociation([]), "at least one rule"),
    "no program": (lambda: ASTFTCPServerTemplate(), "program is missing"),
    "cps": (lambda: template(*exchange(), cps=-1), "cps is -1"),
    "group": (
        lambda: ASTFCapInfo(file="dns.pcap", tg_name="a" * 21),
        "give 1 to 20 characters",
    ),
    "both": (lambda: ASTFCapInfo(file="dns.pcap", cps=1, l7_percent=1), "exclude each other"),
    "nothing to do": (lambda: ASTFProfile(default_ip_gen=pools()), "templates and cap_list are missing"),
    "mixed": (lambda: template(exchange()[0], ASTFProgram(stream=False)), "TCP .* UDP"),
    "json": (lambda: ASTFProfileLight([]), "object with buf_list"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", REFUSED_AT_ONCE)
def test_what_cannot_work_is_refused_at_once(name: str) -> None:
    build, words = REFUSED_AT_ONCE[name]
    with pytest.raises((ASTFError, STLProfileError), match=words):
        build()


def test_a_sixth_variable_is_refused() -> None:
    program = ASTFProgram()
    for name in "abcde":
        program.set_var(name, 1)
        program.set_tick_var(name)
    with pytest.raises(ASTFError, match="'f' is the sixth"):
        program.set_var("f", 1)


def test_pools_of_clients_must_not_overlap() -> None:
    other = ASTFIPGen(
        dist_client=ASTFIPGenDist(["16.0.0.100", "16.0.1.0"]),
        dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.0.9"]),
    )
    with pytest.raises(
        ASTFError, match=r"templates\[1\]: the pool of clients 16.0.0.100 to 16.0.1.0 overlaps"
    ):
        profile(template(*exchange()), template(*exchange(), other, port=81)).to_json()


def test_pools_of_emulated_clients_name_their_namespace_and_have_no_range() -> None:
    servers = ASTFIPGenDist(["48.0.0.1", "48.0.0.9"])
    keys = [EMUNamespaceKey(0, tci=[100]), {"vport": 0, "tci": 200, "tpid": 0x8100}]
    generators = [ASTFIPGen(ASTFIPGenDist(emulation=key, ready_min=9), servers) for key in keys]
    templates = [template(*exchange(), one, port=80 + at) for at, one in enumerate(generators)]
    first, _, second = profile(*templates).to_json()["ip_gen_dist_list"]
    assert first == {
        "emulation": {"vport": 0, "tci": [100], "tpid": [0], "ready_min": 9},
        "distribution": "seq",
        "dir": "c",
    }
    assert second["emulation"] == {"vport": 0, "tci": [200], "tpid": [0x8100], "ready_min": 9}


def test_a_pool_is_for_one_side() -> None:
    dist = ASTFIPGenDist(["16.0.0.1", "16.0.0.9"])
    with pytest.raises(ASTFError, match="is for clients: make another"):
        ASTFIPGen(dist_client=dist, dist_server=dist)


def test_servers_for_the_same_flows_are_refused() -> None:
    with pytest.raises(ASTFError, match=r"templates\[1\] and templates\[0\] serve the same flows on port 80"):
        profile(template(*exchange()), template(*exchange(b"x")))
    ranges = [
        ASTFAssociationRule(80, "48.0.0.0", "48.0.0.9"),
        ASTFAssociationRule(80, "48.0.0.9", "48.0.0.20"),
    ]
    made = [template(*exchange()), template(*exchange())]
    for one, rule in zip(made, ranges, strict=True):
        one.server_template.assoc = ASTFAssociation(rule)
    with pytest.raises(ASTFError, match="serve the same flows"):
        profile(*made)


def test_tcp_and_udp_may_share_a_port() -> None:
    client, server = ASTFProgram(stream=False), ASTFProgram(stream=False)
    client.send_msg(b"x")
    server.recv_msg(1)
    fields = profile(template(*exchange()), template(client, server)).to_json()
    assert [program.get("stream", True) for program in fields["program_list"]] == [True, True, False, False]


NEW_STYLE = """
import argparse
from trex.astf.api import *

class Prof1:
    def get_profile(self, tunables, **kwargs):
        parser = argparse.ArgumentParser()
        parser.add_argument("--size", type=int, default=1)
        size = parser.parse_args(tunables).size
        c, s = ASTFProgram(), ASTFProgram()
        c.send(b"x" * size); s.recv(size)
        ip_gen = ASTFIPGen(dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.9"]),
                           dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.0.9"]))
        return ASTFProfile(ip_gen, templates=ASTFTemplate(
            ASTFTCPClientTemplate(ip_gen, program=c), ASTFTCPServerTemplate(s)))

def register():
    return Prof1()
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def write_profile(text: str) -> Path:
        path = tmp_path / "profile.py"
        path.write_text(text)
        return path

    return write_profile


@pytest.mark.parametrize("tunables", [{"size": 7}, {"tunables": ["--size", "7"]}, {"tunables": ["size=7"]}])
def test_tunables_come_in_either_style(write: Callable[[str], Path], tunables: dict[str, Any]) -> None:
    old = NEW_STYLE.replace("def get_profile(self, tunables, **kwargs)", "def get_profile(self, size=1)")
    old = old.replace("size = parser.parse_args(tunables).size", "pass")
    styles = [old] if tunables.get("tunables") == ["size=7"] else [old, NEW_STYLE]
    for style in styles:
        fields = ASTFProfile.load(write(style), **tunables).to_json()
        assert fields["program_list"][1]["commands"] == [{"name": "rx", "min_bytes": 7}]


def test_a_loaded_profile_says_its_tunables(write: Callable[[str], Path]) -> None:
    loaded = ASTFProfile.load(write(NEW_STYLE.replace("tunables, **kwargs", "tunables=(), size=4")))
    assert isinstance(loaded, ASTFProfile)
    assert loaded.meta == {"type": "python", "tunables": {"tunables": (), "size": 4}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("s.recv(size)", "s.recv(-1)"), r"line 11: .*: recv: bytes is -1"),
        (("s.recv(size)", "s.jmp('x')"), r"the server's program, command 0 \(jmp_cmp\): label 'x'"),
        (("def register", "def other"), r"no register\(\)"),
        (("def get_profile", "def get_other"), r"no get_profile\(\)"),
        (("return ASTFProfile", "return str"), r"str\(\) got|must return an ASTFProfile|TypeError"),
    ],
)
def test_errors_name_the_file_and_the_line(
    write: Callable[[str], Path], change: tuple[str, str], words: str
) -> None:
    with pytest.raises(STLProfileError, match=f"profile.py.*{words}"):
        ASTFProfile.load(write(NEW_STYLE.replace(*change)))


def test_json_is_kept_as_it_is(tmp_path: Path) -> None:
    made = profile(template(*exchange()))
    made.save(tmp_path / "a.json")
    loaded = ASTFProfile.load(tmp_path / "a.json")
    assert isinstance(loaded, ASTFProfileLight)
    assert loaded.to_json_str(pretty=False, sort_keys=True) == made.to_json_str(pretty=False, sort_keys=True)
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(STLProfileError, match=r"b.json, line 1: not JSON"):
        ASTFProfile.load(tmp_path / "b.json")
    with pytest.raises(STLProfileError, match=r"give .py or .json"):
        ASTFProfile.load(tmp_path / "c.yaml")


def test_recorded_profiles_are_taken(recorded: Path) -> None:
    paths = sorted((recorded / "profiles-stateful").glob("*.json"))
    assert len(paths) >= 33
    for path in paths:
        assert ASTFProfile.load(path).to_json() == json.loads(path.read_text())


def test_the_papers_listing_is_the_same(listings: Path) -> None:
    fields = ASTFProfile.load(listings / "listing6.py").to_json()
    request, response = (base64.b64decode(buffer) for buffer in fields["buf_list"])
    assert (request[:4], response[-1:]) == (b"GET ", b"*")
    assert fields["program_list"][0]["commands"][1] == {"name": "rx", "min_bytes": len(response)}


def test_print_stats_sums_up(capsys: pytest.CaptureFixture[str]) -> None:
    profile(template(*exchange(), cps=2)).print_stats()
    printed = capsys.readouterr().out
    assert "total bytes:15 cps:2 bps(bytes * cps * 8):240" in printed


def test_an_answer_of_a_capture_can_wait(recorded: Path) -> None:
    capture = recorded / "pcap" / "delay_10_dns_0.pcap"
    server = ASTFProgram(file=capture, side="s", s_delay=ASTFCmdDelay(1_000_000))
    words = [command.word for command in server.commands]
    assert words == ["keepalive", "rx_msg", "delay", "tx_msg"]


def test_a_program_says_which_end_of_data_it_means() -> None:
    reads = ASTFProgram()
    reads.send(b"GET / HTTP/1.0\r\n\r\n")
    reads.recv_until_close()
    waits = ASTFProgram()
    waits.recv(1_000)
    until, so_many = (program.to_json()["commands"][-1] for program in (reads, waits))
    # TRex's servers, which do not know the field, wait for more than comes.
    assert until == {"name": "rx", "min_bytes": 0xFFFFFFFF, "until_close": True}
    assert so_many == {"name": "rx", "min_bytes": 1_000}
    with pytest.raises(ASTFError):
        datagrams = ASTFProgram(stream=False)
        datagrams.recv_until_close()
        datagrams.to_json()
