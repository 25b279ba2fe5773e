"""A transcript of each `emu_*` command of the console, by TRex's names and options, on one server."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import EMUClientKey, EMUNamespaceKey
from allosaur.cli._main import main
from allosaur.cli._options import ServerAddress
from allosaur.cli.console import _line, _loop
from allosaur.cli.console._completion import completions
from allosaur.cli.console._prompt_text import prompt_text
from allosaur.cli.console._session import Session, Settings, Target, opened
from allosaur.cli.console.commands import of_session
from allosaur.cli.trex._console import main as trex_console
from allosaur.server import LocalServer

#: Hosts with every plugin that has commands, on both ports, which are joined.
PROFILE = """
import argparse
from trex.emu.api import *

class Hosts:
    def get_profile(self, tunables):
        parser = argparse.ArgumentParser()
        parser.add_argument("--clients", type=int, default=2)
        count = parser.parse_args(tunables).clients
        names = {"host1.example": [{"type": "A", "class": "IN", "answer": "48.0.0.1"}]}
        of_port = (
            {"dns": {"name_server": True, "database": names}, "mdns": {"hosts": ["desk1"]}},
            {"dns": {"dns_server_ip": "16.0.0.1"}, "mdns": {}, "dot1x": {"user": "a", "password": "b"}},
        )
        namespaces = []
        for port, more in enumerate(of_port):
            mac, own, other = Mac([2, 0, port, 0x70, 0, 1]), Ipv4("16.0.0.1"), Ipv4("17.0.0.1")
            own, other = (own, other) if port == 0 else (other, own)
            six = Ipv6("2001:db8::1000"), Ipv6("2001:db8::2000")
            plugs = {**dict.fromkeys(("arp", "icmp", "igmp", "ipv6", "transport", "lldp", "cdp"), {}), **more}
            hosts = []
            for i in range(count):
                addresses = {"ipv4": own[i].V(), "ipv4_dg": other[i].V()}
                addresses |= {"ipv6": six[port][i].V(), "dg_ipv6": six[1 - port][i].V()}
                hosts.append(EMUClientObj(mac[i].V(), **addresses))
            ns = {"arp": {}, "icmp": {}, "igmp": {"dmac": mac.V()}, "ipv6": {"dmac": mac.V()}, "mdns": {}}
            namespaces.append(EMUNamespaceObj(EMUNamespaceKey(port), hosts, plugs=ns, def_c_plugs=plugs))
        return EMUProfile(namespaces)

def register():
    return Hosts()
"""
NEAR, FAR = "--mac 02:00:00:70:00:01", "--mac 02:00:01:70:00:01"
#: Clients of other protocols, for their counters.
OTHERS = {"dhcp": "dhcp_clients", "dhcpv6": "dhcpv6_clients", "dhcpsrv": "dhcp_server -t client_port=-1"}
SERVER = "--mac 02:00:00:60:00:01"

TRANSCRIPT: list[tuple[str, int, list[str]]] = [
    ("help", 0, ["Emulated clients:", "emu_ipfix_set_template_rate  set how many"]),
    ("help emu_icmp_ping", 0, ["--amount N", "example: emu_icmp_ping -p 0 --mac"]),
    ("emu_show_all", 0, ["There are no namespaces"]),
    ("emu_load_profile", 2, ["-f is missing"]),
    ("emu_load_profile -f no_such_profile", 2, ["no such file"]),
    ("emu_load_profile -f {folder}/hosts.py -t -h", 0, ["--clients CLIENTS"]),
    ("emu_load_profile -f {folder}/hosts.py -d -t --clients 1", 0, ['"ipv4": "16.0.0.1"', '"def_c_plugs"']),
    ("emu_load_profile -f {folder}/hosts.py -m 1000 -t clients=20", 0, ["40 clients in 2", "[SUCCESS]"]),
    ("emu_show_all", 0, ["Namespace information", "DG-IPv4", "02:00:01:70:00:14"]),
    ("emu_show_all --max-clients 2 --max-ns 2 --6 --4-dg --6-dg --6-router", 0, ["IPv6-Local", "DG-4 Table"]),
    ("emu_show_all --json", 0, ['"mac": "02:00:00:70:00:14"']),
    ("emu_show_all --yaml", 0, ["mac: 02:00:00:70:00:14"]),
    ("emu_show_all --max-clients 0", 2, ["--max-clients: '0' is not a whole number above zero"]),
    ("emu_show_ns_info -p 1", 0, ["#Clients", "20"]),
    ("emu_show_ns_info -p 1 --json", 0, ['"active_clients": 20']),
    ("emu_show_ns_info -p 1 --vlan 5 --tpid 0x88a8", 3, ["can't find a valid namespace"]),
    ("emu_show_ns_info", 2, ["-p/--port is missing"]),
    (f"emu_show_client_info -p 0 {NEAR} --4-dg", 0, ["02:00:01:70:00:01", "17.0.0.1"]),
    ("emu_show_client_info -p 0 --mac nonsense", 2, ["'nonsense' is not a MAC address"]),
    ("emu_show_counters", 0, ["parser counters", "addNs"]),
    ("emu_show_counters --tables pars -v --zero", 0, ["errParser*", "ERROR", "arp packets"]),
    ("emu_show_counters --tables (", 2, ["is no regular expression"]),
    ("emu_show_counters --headers", 0, ["parser", "timerw"]),
    ("emu_show_counters --types error --zero --json", 0, ['"errEAPolTooShort": 0']),
    ("emu_show_counters --clear", 0, ["Clearing counters", "[SUCCESS]"]),
    ("emu_resource_monitor_show --zero", 0, ["rss"]),
    ("emu_resource_monitor_reset", 0, ["[SUCCESS]"]),
    ("emu_show_mbuf", 0, ["Mbuf Util", "mbufAlloc"]),
    ("emu_arp_get_cfg -p 0", 0, ["enable", "True"]),
    ("emu_arp_set_cfg -p 0 --enable off", 0, ["[SUCCESS]"]),
    ("emu_arp_get_cfg --all-ns", 0, ["port 0", "False", "port 1", "True"]),
    ("emu_arp_set_cfg -p 0 --enable on", 0, ["[SUCCESS]"]),
    ("emu_arp_set_cfg -p 0 --enable perhaps", 2, ["'perhaps' is neither true nor false"]),
    ("emu_arp_get_cfg", 2, ["one of the arguments -p/--port --all-ns is required"]),
    (f"emu_arp_cmd_query -p 0 {NEAR} --garp on", 0, ["[SUCCESS]"]),
    ("emu_arp_show_cache -p 0", 0, ["17.0.0.1", "02:00:01:70:00:01", "Complete"]),
    ("emu_arp_show_counters -p 0", 0, ["pktTxGArp"]),
    ("emu_arp_show_counters --all-ns -v", 0, ["port 0", "port 1", "tx arp garp"]),
    ("emu_arp_show_counters -p 0 --types WARNING --zero --yaml", 0, [""]),
    (
        f"emu_icmp_ping -p 0 {NEAR} --amount 2 --pace 100 --size 64",
        0,
        ["repliesInOrder", "2 sent, 2 answered"],
    ),
    (f"emu_icmp_ping -p 0 {NEAR} --dst 17.0.0 --amount 1", 2, ["--dst: '17.0.0' is not an IP address"]),
    ("emu_icmp_show_counters -p 1", 0, ["pktRxIcmpQuery"]),
    ("emu_igmp_get_cfg -p 0", 0, ["mtu", "dmac", "02:00:00:70:00:01"]),
    ("emu_igmp_set_cfg -p 0 --mtu 1000 --mac 02:00:00:70:00:02", 0, ["[SUCCESS]"]),
    ("emu_igmp_set_cfg -p 0 --mtu 5 --mac 02:00:00:70:00:02", 2, ["mtu", "256 to 9000"]),
    ("emu_igmp_add_mc -p 0 --4 239.1.0.1 --4-count 3", 0, ["[SUCCESS]"]),
    ("emu_igmp_add_mc -p 0 --4 16.0.0.1 --4-count 3", 2, ["multicast group"]),
    ("emu_igmp_add_mc_sg -p 0 --4g 239.2.0.1 --4g-count 2 --4s 16.0.0.9 --4s-count 2", 0, ["[SUCCESS]"]),
    ("emu_igmp_show_mc -p 0", 0, ["239.1.0.3", "16.0.0.9, 16.0.0.10"]),
    ("emu_igmp_remove_mc_sg -p 0 --4g 239.2.0.1 --4s 16.0.0.9", 0, ["[SUCCESS]"]),
    ("emu_igmp_remove_mc -p 0 --4 239.1.0.1 --4-count 2", 0, ["[SUCCESS]"]),
    ("emu_igmp_remove_all_mc --all-ns", 0, ["[SUCCESS]"]),
    ("emu_igmp_show_mc -p 0", 0, ["There is nothing"]),
    ("emu_igmp_show_counters -p 0", 0, ["opsAdd"]),
    ("emu_ipv6_get_cfg -p 0", 0, ["mtu"]),
    ("emu_ipv6_set_cfg -p 0 --mtu 1400 --mac 02:00:00:70:00:01", 0, ["[SUCCESS]"]),
    ("emu_ipv6_add_mld -p 0 --6 ff05::1 --6-count 2", 0, ["[SUCCESS]"]),
    ("emu_ipv6_add_mld_sg -p 0 --6g ff05::9 --6s 2001:db8::1 --6s-count 2", 0, ["[SUCCESS]"]),
    ("emu_ipv6_show_mld -p 0", 0, ["ff05::2", "2001:db8::1, 2001:db8::2"]),
    ("emu_ipv6_remove_mld_sg -p 0 --6g ff05::9 --6s 2001:db8::1", 0, ["[SUCCESS]"]),
    ("emu_ipv6_remove_mld -p 0 --6 ff05::1 --6-count 1", 0, ["[SUCCESS]"]),
    ("emu_ipv6_remove_all_mld -p 0", 0, ["[SUCCESS]"]),
    ("emu_ipv6_show_cache -p 0", 0, ["fe80::"]),
    ("emu_ipv6_show_counters -p 0", 0, ["pktTxNeighborUnsolicitedNA"]),
    (f"emu_ipv6_ping -p 0 {NEAR} --dst 2001:db8::2000 --amount 2 --pace 50", 0, ["2 sent, 2 answered"]),
    (f"emu_dns_show_domains -p 0 {NEAR}", 0, ["host1.example"]),
    (f"emu_dns_show_domain_entries -p 0 {NEAR} -d host1.example", 0, ["48.0.0.1"]),
    (f"emu_dns_query -p 1 {FAR} -n host1.example -t a -c IN", 0, ["[SUCCESS]"]),
    (f"emu_dns_query -p 1 {FAR} -n host1.example -t MX", 2, ["there is no value of", "MX"]),
    (f"emu_dns_show_cache -p 1 {FAR}", 0, ["host1.example", "48.0.0.1"]),
    (f"emu_dns_flush_cache -p 1 {FAR}", 0, ["[SUCCESS]"]),
    (f"emu_dns_show_c_counters -p 1 {FAR}", 0, ["pktTxDnsQuery"]),
    ("emu_dns_show_ns_counters -p 1 --zero", 0, ["autoPlayQueries"]),
    (f"emu_mdns_add_hosts -p 0 {NEAR} --hosts desk2 desk3", 0, ["[SUCCESS]"]),
    (f"emu_mdns_show_hosts -p 0 {NEAR}", 0, ["desk1", "desk3"]),
    (f"emu_mdns_remove_hosts -p 0 {NEAR} --hosts desk3", 0, ["[SUCCESS]"]),
    (f"emu_mdns_query -p 1 {FAR} -n desk1", 0, ["[SUCCESS]"]),
    ("emu_mdns_show_cache -p 1", 0, ["desk1", "16.0.0.1"]),
    ("emu_mdns_flush_cache -p 1", 0, ["[SUCCESS]"]),
    (f"emu_mdns_show_c_counters -p 1 {FAR}", 0, ["pktTxMDnsQuery"]),
    ("emu_mdns_show_ns_counters --all-ns", 0, ["rxPkts"]),
    (f"emu_dot1x_show_client_info -p 1 {FAR}", 0, ["EAP_WAIT_FOR_IDENTITY"]),
    (f"emu_dot1x_show_client_info -p 1 {FAR} --json", 0, ['"state": "EAP_WAIT_FOR_IDENTITY"']),
    ("emu_dot1x_show_all -p 1 --max-clients 7", 0, ["02:00:01:70:00:14", "EAP_WAIT_FOR_IDENTITY"]),
    (f"emu_dot1x_show_counters -p 1 {FAR} --zero -4 17.0.0.1", 0, ["pktTxIdentity"]),
    (f"emu_lldp_show_counters -p 0 {NEAR}", 0, ["pktTx"]),
    (f"emu_cdp_show_counters -p 0 {NEAR}", 0, ["pktTx"]),
    (f"emu_transport_show_counters -p 1 {FAR} --tables udp", 0, ["udp_sndpack"]),
    *(
        (f"emu_load_profile -f {profile}; emu_{name}_show_counters -p 0 {mac} --zero", 0, ["pktTx", "pktRx"])
        for name, profile, mac in (
            ("dhcp", "dhcp_clients", "--mac 02:00:00:70:00:01"),
            ("dhcpv6", "dhcpv6_clients", "--mac 02:00:00:70:00:01"),
            ("dhcpsrv", "dhcp_server", SERVER),
        )
    ),
    ("emu_ipfix_push --dst-url udp://10.0.0.1:4739 --dir /tmp", 3, ["not kernel mode"]),
    ("emu_ipfix_push --dst-url file:///tmp/x --dir /tmp", 2, ["--dst-url", "udp or http"]),
    ("emu_ipfix_load_profile_cfg --profile-cfg-file x", 2, ["cannot be read", "JSON file"]),
    ("emu_remove_profile -m 100000", 0, ["[SUCCESS]"]),
    ("emu_show_ns_info -p 0", 3, ["can't find a valid namespace"]),
]
#: What the server does not have: they are asked for, and the refusal of a server is told.
OF_A_PLUGIN_THAT_IS_NOT_THERE = (
    *(f"emu_{name}_show_counters -p 0 {NEAR}" for name in ("appsim", "tdl", "ipfix")),
    *("emu_transe_show_counters -p 0", "emu_ipfix_show_ns_counters -p 0"),
    *(f"emu_ipfix_{name} -p 0 {NEAR}" for name in ("get_gen_info", "get_exp_info", "enable", "disable")),
    *(f"emu_ipfix_{name} -p 0 {NEAR} -g gen1" for name in ("enable_gen", "disable_gen")),
    *(f"emu_ipfix_set_{name}_rate -p 0 {NEAR} -g gen1 -r 5" for name in ("data", "template")),
)
ELSEWHERE = {"emu_shutdown"}
"""What has a test of its own."""


@pytest.fixture(scope="module")
def emulating() -> Iterator[LocalServer]:
    with LocalServer(emu=True) as server:
        yield server


@pytest.fixture(scope="module")
def session(emulating: LocalServer) -> Iterator[Session]:
    where = ServerAddress(emulating.host, emulating.emu_port or 0)
    target = Target(emulating.host, emulating.rpc_port, emulating.pub_port)
    with opened(target, Settings(emulation=where, readonly=True)) as session:
        yield session


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("emulation")
    (made / "hosts.py").write_text(PROFILE, encoding="utf-8")
    return made


def known(session: Session, line: str) -> None:
    """Wait for what a line shows: packets need a moment from port to port."""
    near, far = (EMUClientKey(EMUNamespaceKey(port), f"02:00:0{port}:70:00:01") for port in (0, 1))
    client = session.emulation

    def resolved(gateway: str) -> bool:
        return bool((client.get_info_clients(near)[0].get(gateway) or {}).get("resolve"))

    looks: dict[str, Callable[[], Any]] = {
        "emu_arp_show_cache": lambda: resolved("dgw"),
        "emu_icmp_ping": lambda: resolved("dgw"),
        "emu_ipv6_ping": lambda: resolved("ipv6_dgw"),
        "emu_ipv6_show_cache": lambda: resolved("ipv6_dgw"),
        "emu_dns_show_cache": lambda: client.dns.get_cache(far),
        "emu_mdns_show_cache": lambda: client.mdns.get_cache(far.ns_key),
    }
    look = looks.get(line.split()[0], lambda: True)
    for _ in range(20_000):
        if look():
            return
    pytest.fail(f"{line!r} would show nothing for ever")


@pytest.mark.parametrize(("line", "code", "shown"), TRANSCRIPT, ids=[line for line, _, _ in TRANSCRIPT])
def test_transcript(
    line: str, code: int, shown: list[str], session: Session, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known(session, line)
    assert _loop.line(line.replace("{folder}", str(folder)), session) == code, capsys.readouterr()
    out, err = capsys.readouterr()
    for one in shown:
        assert one in out + err, f"{one!r} is not in what {line!r} printed:\n{out}\n{err}"
    assert (code != 0) == any(one.startswith("error: ") for one in err.splitlines()), err
    assert "defect" not in err


@pytest.mark.parametrize("line", OF_A_PLUGIN_THAT_IS_NOT_THERE)
def test_a_plugin_that_is_not_there_is_refused(
    line: str, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _loop.line(f"emu_load_profile -f arp_hosts -t clients=1; {line}", session) == 3
    err = capsys.readouterr().err
    assert err.startswith("error: ") and "defect" not in err


def test_every_command_is_tried(session: Session) -> None:
    lines = [*(line for line, _, _ in TRANSCRIPT), *OF_A_PLUGIN_THAT_IS_NOT_THERE]
    tried = {part.split()[0] for line in lines for part in line.split(";")}
    ours = {name for name in of_session(session) if name.startswith("emu_")}
    assert ours - ELSEWHERE - tried == set()
    assert len(ours) == 76, "as many as TRex's console has"


def test_the_example_of_each_command_is_one(session: Session) -> None:
    commands = of_session(session)
    for command in commands.values():
        name, *rest = _line.words(command.example, commands)
        assert name == command.name
        assert _line.parser_of(command).parse_known_args(rest)[1] == []


def test_words_are_completed(session: Session) -> None:
    session.commands = of_session(session)
    assert "emu_load_profile" in completions(session, "emu_lo")
    assert "ping_hosts" in completions(session, "emu_load_profile -f ping")
    assert "--all-ns" in completions(session, "emu_arp_show_cache --")


def test_a_console_without_them_says_how_to_get_them(
    emulating: LocalServer, session: Session, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = Target(emulating.host, emulating.rpc_port, emulating.pub_port)
    with opened(target, Settings(readonly=True)) as without:
        assert _loop.line("emu_show_all", without) == 2
        assert "there is no command 'emu_show_all'" in capsys.readouterr().err
        assert "emu_show_all" not in of_session(without)


def test_a_console_for_nothing_else(
    emulating: LocalServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--emu-only-server", f"{emulating.host}:{emulating.emu_port}"]
    monkeypatch.setattr("sys.stdin", io.StringIO("emu_show_all\nstats\nhelp\n"))
    assert main(["console", *where, "--json"]) == 2
    shown, refused, listed = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert shown["ok"] and "namespaces" in shown
    assert "there is no command 'stats'" in refused["error"]
    assert "emu_shutdown" in listed["commands"] and "start" not in listed["commands"]
    settings = Settings(emulation=ServerAddress(emulating.host, emulating.emu_port or 0), only_emulation=True)
    with opened(Target("", 0, 0), settings) as session:
        assert prompt_text(session) == "allosaur(emulation)> "
    assert main(["console", "--emu-only-server", "127.0.0.1:1"]) == 3


def test_trex_console(
    emulating: LocalServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["-s", emulating.host, "-p", str(emulating.rpc_port), "--async_port", str(emulating.pub_port)]
    port = ["--emu-server-port", str(emulating.emu_port)]
    for words in (
        ["--emu"],
        ["--emu", "--emu-server", emulating.host],
        ["--emu-only-server", emulating.host],
    ):
        monkeypatch.setattr("sys.stdin", io.StringIO("emu_load_profile -f arp_hosts\nemu_remove_profile\n"))
        assert trex_console([*server, *port, "-r", *words]) == 0
        out, err = capsys.readouterr()
        assert out.count("[SUCCESS]") == 2 and not err, (out, err)


def test_they_are_shut_down(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalServer(emu=True) as server:
        settings = Settings(
            emulation=ServerAddress(server.host, server.emu_port or 0), only_emulation=True, verbose=True
        )
        with opened(Target("", 0, 0), settings) as session:
            assert _loop.line("emu_shutdown -t 1000", session) == 0
        out = capsys.readouterr().out
        assert "[SUCCESS]" in out and '"method": "shutdown"' in out.replace('"method":"', '"method": "')
