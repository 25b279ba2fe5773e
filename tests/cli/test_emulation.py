"""`allosaur emu` against one server with emulated clients on two ports that are joined."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import EMUClient, EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile
from allosaur.cli import _format, _shipped
from allosaur.cli._main import main
from allosaur.cli.trex._emu_sim import main as emu_sim
from allosaur.server import LocalServer

PROFILES = Path(_shipped.__file__).parents[1] / "profiles" / "emulation"
NAMES = sorted(path.stem for path in PROFILES.glob("*.py"))
FIRST = "02:00:00:70:00:01"
GROWTH = 16


@pytest.fixture(scope="module")
def emulating() -> Iterator[LocalServer]:
    with LocalServer(emu=True) as server:
        yield server


@pytest.fixture(scope="module")
def client(emulating: LocalServer) -> Iterator[EMUClient]:
    with EMUClient(emulating.host, server=emulating.host, sync_port=emulating.emu_port or 0) as client:
        yield client


class Emu:
    """`allosaur emu ...` in this process: what it printed, or its JSON."""

    def __init__(self, server: LocalServer, capsys: pytest.CaptureFixture[str]) -> None:
        self._where = ["--server", f"{server.host}:{server.emu_port}"]
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        self._capsys.readouterr()
        assert main(["emu", *words, *self._where]) == code, self._capsys.readouterr()
        return self._capsys.readouterr().out

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code))

    def refused(self, *words: str, code: int = 2) -> str:
        assert main(["emu", *words, *self._where]) == code
        (line,) = (one for one in self._capsys.readouterr().err.splitlines() if one.startswith("error: "))
        return line


@pytest.fixture
def emu(emulating: LocalServer, client: EMUClient, capsys: pytest.CaptureFixture[str]) -> Emu:
    client.remove_profile()
    return Emu(emulating, capsys)


def test_hosts_are_loaded_shown_pinged_and_removed(emu: Emu) -> None:
    assert "allosaur emu load PROFILE" in emu("show")
    assert emu("load", "ping_hosts", "-t", "clients=30") == "Emulating 60 clients in 2 namespaces.\n"
    shown = emu("show", "--port", "1")
    assert shown.startswith("Port 1: 30 clients; plugins arp, icmp\n")
    assert len(re.findall("^02:00:01:70:00:", shown, re.M)) == 20 and "... and 10 more" in shown
    assert emu("ping", "17.0.0.2", "-n", "2", "-i", "10ms").startswith(
        "17.0.0.2: 2 sent, 2 answered; round trip"
    )
    pinged = emu.json("ping", "16.0.0.9", "--mac", "02:00:01:70:00:08", "-n", "1")
    assert (pinged["ok"], pinged["mac"], pinged["received"]) == (True, "02:00:01:70:00:08", 1)
    found = emu.json("neighbors")["neighbors"]
    assert {"address": "17.0.0.2", "mac": "02:00:01:70:00:01", "state": "complete"}.items() <= found[
        0
    ].items()
    assert len(found) == 60 and "... and 57 more" in emu("neighbors", "--limit", "3")
    whole = emu.json("show")["namespaces"]
    assert [(one["vport"], one["active_clients"], len(one["clients"])) for one in whole] == [
        (0, 30, 30),
        (1, 30, 30),
    ]
    assert whole[0]["plugins"] == ["arp", "icmp"]
    details = emu("show", "--mac", FIRST)
    assert re.search(r"^  dgw.rmac +02:00:01:70:00:01$", details, re.M) and "of port 0" in details
    assert emu.json("remove") | {"server": ""} == {
        "command": "emu",
        "action": "remove",
        "server": "",
        "ok": True,
        "clients": 60,
        "namespaces": 2,
    }


def test_an_address_that_nobody_has_fails(emu: Emu) -> None:
    emu("load", "ping_hosts", "-t", "clients=1,device=1")
    assert emu("ping", "48.0.0.1", "-n", "1", "--timeout", "1", code=1) == "48.0.0.1: 1 sent, 0 answered.\n"


def test_counters_are_those_of_the_server_a_namespace_a_client_or_all(emu: Emu) -> None:
    emu("load", "dns_names", "-t", "clients=3,rate=500,queries=30")
    for _ in range(2_000):
        tables = emu.json("counters", "dns", "--port", "1")["tables"]
        if tables[0]["counters"].get("dns of clients", {}).get("pktRxDnsResponse") == 30:
            break
    (both,) = tables
    assert both["vport"] == 1 and both["counters"]["dns of clients"]["pktTxDnsQuery"] == 30
    each = [
        emu.json("counters", "dns", "--mac", f"02:00:01:70:00:0{one}")["tables"][0]["counters"]["dns"]
        for one in (1, 2, 3)
    ]
    assert sum(one["pktTxDnsQuery"] for one in each) == 30
    text = emu("counters", "dns", "--port", "0")
    assert re.search(r"^rxQuestions +30 +ops +Number of questions", text, re.M)
    assert max(map(len, text.splitlines())) <= 80
    assert "addNs" in emu("counters") and "rss" in emu("counters", "resources")
    assert "errTCP" in emu("counters", "--zero") and "errTCP" not in emu("counters")
    assert emu("counters", "dns", "--clear") == "Cleared.\n"
    assert emu.json("counters", "dns", "--port", "1")["tables"][0]["counters"] == {}
    assert emu.json("counters", "icmp")["tables"][0]["counters"] == {}, "nobody pinged"


def test_groups_are_listed(emu: Emu) -> None:
    emu("load", "igmp_groups", "-t", "groups=3")
    assert [one["group"] for one in emu.json("groups")["groups"]] == ["239.1.0.1", "239.1.0.2", "239.1.0.3"]
    assert re.search(r"^239.1.0.3 +any +Port 0$", emu("groups"), re.M)


def test_a_dry_run_asks_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emu", "load", "arp_hosts", "-t", "clients=2", "--dry-run", "--server", ":1"]) == 0
    (namespace,) = json.loads(capsys.readouterr().out)["namespaces"]
    assert [one["ipv4"] for one in namespace["clients"]] == ["16.0.0.2", "16.0.0.3"]


def test_what_is_wrong_is_named(emu: Emu, tmp_path: Path) -> None:
    assert "no such file" in emu.refused("load", "no_such_profile")
    assert "did you mean arp_hosts?" in emu.refused("load", "arp_host")
    assert "unknown.py, line 1" in emu.refused("load", _written(tmp_path / "unknown.py", "nothing here"))
    assert "are its tunables right?" in emu.refused("load", "arp_hosts", "-t", "clint=3")
    assert "0 to 4095" in emu.refused("load", "arp_hosts", "-t", "vlan=5000")
    assert "there are no clients" in emu.refused("ping", "16.0.0.1")
    emu("load", "ping_hosts")
    assert "there are port 0; port 1" in emu.refused("show", "--port", "7")
    assert "--vlan: there is no such namespace" in emu.refused("counters", "arp", "--vlan", "5")
    assert f"--mac {FIRST[:-1]}f: there is no such client" in emu.refused("show", "--mac", f"{FIRST[:-1]}f")
    assert "'nonsense' is not a MAC address; write one such as" in emu.refused("show", "--mac", "nonsense")
    assert "icpm: no such counters; did you mean icmp?" in emu.refused("counters", "icpm")
    assert "counts by namespace: leave --mac out" in emu.refused("counters", "arp", "--mac", FIRST)
    assert "--size: 3 bytes are too few" in emu.refused("ping", "17.0.0.2", "--size", "3")
    assert "'17.0.0' is not an IP address" in emu.refused("ping", "17.0.0")
    assert "there is no command 'lod'; did you mean load?" in emu.refused("lod")


def test_no_server_is_said_with_what_to_do(allosaur: Any, tmp_path: Path) -> None:
    allosaur("emu", "show", "--server", "127.0.0.1:1").failed(3, "no emulated clients at", "server --emu")
    allosaur("ndr", "arp_hosts", "--local").refused("emulates clients", "allosaur emu load")
    told = json.loads(allosaur("emu", "show", "--server", "127.0.0.1:1", "--json").out)
    assert (told["command"], told["ok"], told["exit_code"]) == ("emu", False, 3)


def test_words_are_completed(complete: Callable[..., list[str]]) -> None:
    assert complete("allosaur emu s") == ["show"]
    assert "ping_hosts" in complete("allosaur emu load ping")
    assert complete("allosaur emu counters dhcpv") == ["dhcpv6"]
    assert "--mac" in complete("allosaur emu ping 1.2.3.4 --")


def test_a_long_text_wraps_in_its_column() -> None:
    text = _format.table(("name", "meaning"), [("one", "word " * 20), ("two", "short")], 40, ("meaning",))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 40 and lines[2].startswith("one   word word")
    assert lines[-1] == "two   short"


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_profile_is_loaded(name: str, emu: Emu, client: EMUClient) -> None:
    """Also with half of its tunables changed; all its clients are there, with the plugins that it says."""
    described = _shipped.described(PROFILES / f"{name}.py")
    assert described.kind == "emulation" and described.summary and described.tunables
    assert f"allosaur emu load {name}" in described.text
    assert all(tunable.description for tunable in described.tunables), "Tunables: names them all"
    numbers = [one for one in described.tunables if one.name in ("clients", "groups", "names")]
    for words in ([], [word for one in numbers for word in ("-t", f"{one.name}={GROWTH}")]):
        profile = EMUProfile.load(PROFILES / f"{name}.py", [f"--{word}" for word in words[1::2]])
        emu("load", name, *words)
        for namespace in profile.ns_list:
            (info,) = client.get_info_ns(namespace.key)
            assert info["active_clients"] == len(namespace.clients) > 0
            plugins = {one for given in namespace.clients for one in given.plugs or namespace.def_c_plugs}
            assert plugins <= set(info["plug_names"].split(", "))
    assert client.get_counters().get("parser", {}).keys().isdisjoint({"errInternalHandler"})


def test_each_plugin_has_a_profile() -> None:
    """But the example of sockets, which does what `dns` does."""
    shipped = " ".join(path.read_text(encoding="utf-8") for path in PROFILES.glob("*.py"))
    plugins = EMUClient().registered_plugs.keys() - {"transporte"}
    assert [name for name in sorted(plugins) if f'"{name}": ' not in shipped] == []


def test_leases_come_from_the_shipped_server(emu: Emu, client: EMUClient) -> None:
    emu("load", "dhcp_server", "-t", "clients=20")
    for _ in range(2_000):
        clients = client.get_info_clients(client.get_all_clients_for_ns(EMUNamespaceKey(1)))
        if all(one["ipv4"].startswith("16.0.0.") for one in clients):
            return
    pytest.fail(f"not all of 20 hosts have an address: {clients}")


def test_a_simulation_writes_packets_requests_and_counters(
    allosaur: Any,
    binary: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from scapy.all import ARP, rdpcap

    result = allosaur(
        "sim", "ping_hosts", "-t", "clients=3", "-d", "0.5", "-o", "hosts.pcap", "--json"
    ).json()
    asked = [one["method"] for one in result["requests"]]
    assert asked[-1] == "ctx_client_add" and "api_h" not in str(result["requests"])
    added = [one["params"]["clients"] for one in result["requests"] if one["method"] == "ctx_client_add"]
    assert [len(clients) for clients in added] == [3, 3]
    packets = rdpcap(str(tmp_path / "hosts.pcap"))
    assert len(packets) == result["packets"] >= 12 and all(ARP in packet for packet in packets)
    assert result["counters"]["parser"]["arpPkts"] > 0 and result["lost_packets"] == 0
    allosaur("sim", "ping_hosts", "-m", "5").refused("emulated clients have no traffic")
    monkeypatch.chdir(tmp_path)
    assert emu_sim(["-f", "arp_hosts", "-d", "0.2", "-j", "debug.json"]) == 0
    assert (tmp_path / "emu_out.pcap").stat().st_size > 1_000
    debug = json.loads((tmp_path / "debug.json").read_text(encoding="utf-8"))
    assert debug["mode"] == "emulation" and debug["packets"] > 0
    assert emu_sim(["-f", "imix"]) == 2
    assert emu_sim(["--help"]) == 0 and "-j JSON" in capsys.readouterr().out


def test_a_simulation_is_as_long_as_it_is_told_and_the_same_each_time(
    allosaur: Callable[..., Any], tmp_path: Path
) -> None:
    """Virtual time: neither whole seconds of sleep nor the load of the machine make it longer."""
    from scapy.all import rdpcap

    results = []
    for name in ("first.pcap", "second.pcap"):
        words = ("sim", "dhcp_server", "-t", "clients=5", "-d", "2.4", "-o", name, "--json")
        results.append(allosaur(*words).json())
    first, second = results
    assert first["counters"] == second["counters"]
    # Ticks of 10 ms.
    assert first["counters"]["timerw"]["ticks"] == 240
    assert first["counters"]["parser"]["dhcpPkts"] == 10, "each got an offer and its address"
    packets = rdpcap(str(tmp_path / "first.pcap"))
    assert len(packets) == first["packets"] and 0 <= packets[0].time <= packets[-1].time <= 2.4
    assert (tmp_path / "first.pcap").read_bytes() == (tmp_path / "second.pcap").read_bytes()
    # Hours are no matter.
    long = allosaur("sim", "arp_hosts", "-d", "2h", "--limit", "10", "-o", "long.pcap", "--json").json()
    assert long["counters"]["timerw"]["ticks"] == 720_000
    assert long["packets"] == 10 and long["lost_packets"] > 100
    assert len(rdpcap(str(tmp_path / "long.pcap"))) == 10


def test_ready_generators_of_ipfix_are_exported(binary: str, tmp_path: Path) -> None:
    """Each of them: the server takes it, and its records are as long as its template says."""
    from allosaur.cli.emulation._sim import simulate
    from allosaur.emulation._ipfix import IpfixPlugin, IpfixUdpExporterParams
    from allosaur.emulation._ipfix_avc import AVCGenerators
    from scapy.all import UDP, rdpcap

    for name in AVCGenerators()._generators:
        generators = AVCGenerators([name])
        generators.set_data_rate_all(20)
        generators.set_template_rate_all(1)
        init = IpfixPlugin(IpfixUdpExporterParams("48.0.0.1", 4739), generators).get_json()
        init["dst"] = "emu-udp://48.0.0.1:4739"
        gateway = {"ipv4_dg": "16.0.0.254", "ipv4_force_dg": True, "ipv4_force_mac": "02:00:00:00:00:01"}
        client = EMUClientObj("02:00:00:70:00:01", ipv4="16.0.0.1", **gateway, plugs={"ipfix": init})
        profile = EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0), [client], plugs={}))
        simulate(profile, 1.0, tmp_path / "records.pcap", 1000)
        messages = [bytes(packet[UDP].payload) for packet in rdpcap(str(tmp_path / "records.pcap"))]
        (one,) = generators.get_all()
        record = sum(field["length"] for field in one["fields"])
        described = sum(8 if "enterprise_number" in field else 4 for field in one["fields"])
        templates = [message for message in messages if int.from_bytes(message[16:18], "big") in (2, 3)]
        data = [message for message in messages if message not in templates]
        assert len(templates) >= 1 and len(data) >= 20, name
        heads = 10 if "scope_count" in one else 8
        assert {len(message) - 16 for message in templates} == {heads + described}, name
        assert {int.from_bytes(message[16:18], "big") for message in data} == {one["template_id"]}, name
        records = {(len(message) - 20) % record for message in data}
        assert records == {0} and len(data[0]) > 20, name


def _written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)
