"""Several loads in one run: streams, flows and emulated clients on one server, each judged by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from .test_run_files import STRICT

THREE = ("run", "imix", "http", "emu:ipv6", "--local", "-d", "1", "-m", "imix=1kpps", "-m", "http=5")
NAMES = ["imix", "http", "ipv6_hosts"]
#: Four memory ports; those of a pair lose packets.
STREAMS_LOSE = ("--local-ports", "memory:loss=50%:seed=1,memory,memory,memory")
FLOWS_LOSE = ("--local-ports", "memory,memory,memory:loss=50%:seed=1,memory")


def document(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [error.message for error in STRICT.iter_errors(found)] == []
    assert isinstance(found, dict)
    return found


def test_three_kinds_at_once(allosaur: Any, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("out.json", "junit.xml", "report.html")}
    limits = ("loss>1%", "errors{load=http}>0", "clients.ready<50")
    ended = allosaur(
        *THREE,
        *("--out", files["out.json"], "--junit", files["junit.xml"], "--report", files["report.html"]),
        *("--fail-if", *limits),
        in_time=True,
    )
    assert ended.code == 0, ended
    result = document(files["out.json"])
    assert list(result["loads"]) == NAMES
    assert [one["kind"] for one in result["loads"].values()] == ["stateless", "stateful", "emulation"]
    assert [one["ok"] for one in result["loads"].values()] == [True] * 3
    assert result["loads"]["imix"]["sending_ports"] == [0]
    assert (
        result["loads"]["imix"]["total"]["rx_packets"] == result["loads"]["imix"]["total"]["tx_packets"] > 0
    )
    assert result["loads"]["http"]["clients"]["begun_flows"] > 0
    assert result["loads"]["ipv6_hosts"]["clients"] == {
        "asked": 50,
        "there": 50,
        "ready": 50,
        "waiting": {},
        "namespaces": 1,
    }
    assert {one["threshold"] for one in result["thresholds"]} == set(limits)
    suites = ElementTree.parse(files["junit.xml"]).getroot()
    cases = [
        (suite.attrib["name"], [case.attrib["name"] for case in suite.iter("testcase")]) for suite in suites
    ]
    assert cases == [
        (f"allosaur.{name}", ["verdict", limit]) for name, limit in zip(NAMES, limits, strict=True)
    ]
    page = files["report.html"].read_text(encoding="utf-8")
    for name in NAMES:
        assert name in page
    table = [line.split()[0] for line in ended.out.splitlines() if line.rstrip().endswith("OK")]
    assert table == NAMES
    assert ended.out.count("\nOK: ") == 1


@pytest.mark.parametrize(
    ("more", "failed", "reason"),
    [
        (STREAMS_LOSE, "imix", "imix: "),
        (FLOWS_LOSE, "http", "http: "),
        (("-t", "ipv6_hosts:clients=3", "--fail-if", "clients<4"), "ipv6_hosts", "ipv6_hosts: threshold"),
    ],
)
def test_each_kind_that_fails_alone_fails_the_whole_by_name(
    allosaur: Any, tmp_path: Path, more: tuple[str, ...], failed: str, reason: str
) -> None:
    out = tmp_path / "out.json"
    ended = allosaur(*THREE, "--out", out, *more)
    assert ended.code == 1, ended
    result = document(out)
    assert not result["ok"]
    assert not result["loads"][failed]["ok"]
    assert any(one.startswith(reason) for one in result["reasons"]), result["reasons"]
    assert f"FAILED: {result['reasons'][0]}" in ended.out


def test_clients_that_are_not_ready_fail_a_run(allosaur: Any) -> None:
    ended = allosaur("run", "emu:arp", "--local", "-d", "200ms", "-t", "clients=2", "--json")
    result = ended.json()
    assert [error.message for error in STRICT.iter_errors(result)] == []
    assert (ended.code, result["mode"], result["ready_s"]) == (1, "emulation", None)
    assert result["reasons"] == ["2 of 2 clients waited for its gateway (ARP)"]
    assert result["clients"]["there"] == 2


def test_emulated_clients_alone(allosaur: Any) -> None:
    ended = allosaur("run", "emu:ipv6", "--local", "-d", "200ms", "--fail-if", "clients.ready<50")
    assert ended.code == 0, ended
    assert "OK: 50 clients were there and ready, and no errors were counted" in ended.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ports", "imix=0", "--ports", "http=0,1"), ("port 0 is wanted by imix and by http",)),
        (("--ports", "0,1"), ("--ports: say of which load",)),
        (("-m", "htp=5"), ("-m htp: no profile of this run is called so", "http")),
        (("--ports", "ipv6_hosts=0"), ("ipv6_hosts: ", "on the ports that their profile names")),
        (("-m", "http=5mpps"), ("http: ", "a rate is for streams")),
        (("--fail-if", "missed>1%"), ("say of which load, such as missed{load=imix}", "imix, http")),
        (("--fail-if", "loss{load=web}>1%"), ("no load is called 'web'",)),
        (("--fail-if", "loss{load=http}>1%"), ("there is no metric 'loss'",)),
        (("-t", "http:nothing=1"), ("http: ", "nothing")),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    allosaur: Any, words: tuple[str, ...], said: tuple[str, ...]
) -> None:
    allosaur("run", "imix", "http", "emu:ipv6", "--local", "-d", "1", *words).refused(*said)


def test_profiles_of_one_name_get_numbers(allosaur: Any) -> None:
    words = ("-m", "1kpps", "--fail-if", "loss{load=imix2}>1%")
    ended = allosaur("run", "imix", "imix", "--local", "-d", "300ms", "--json", *words, in_time=True)
    result = ended.json()
    assert ended.code == 0, ended
    assert {name: one["sending_ports"] for name, one in result["loads"].items()} == {
        "imix": [0],
        "imix2": [2],
    }


@pytest.mark.parametrize(
    ("profile", "what"),
    [
        ("arp_hosts", "its gateway (ARP)"),
        ("dhcp_clients", "an IPv4 lease (DHCP)"),
        ("dhcpv6_clients", "an IPv6 lease (DHCPv6)"),
        ("dot1x_supplicants", "a login (802.1X)"),
        ("pppoe_sessions", "a session (PPPoE)"),
    ],
)
def test_clients_that_nobody_answers_are_not_ready(allosaur: Any, profile: str, what: str) -> None:
    words = ("-t", "clients=2", "-d", "100ms", "--local", "--json")
    ended = allosaur("run", f"emu:{profile}", *words)
    assert ended.code == 1, ended
    assert json.loads(ended.out)["clients"]["waiting"] == {what: 2}


def test_two_profiles_of_emulated_clients_have_namespaces_of_their_own(allosaur: Any) -> None:
    words = ("--local", "-d", "200ms", "-t", "dhcp_server:client_port=-1")
    words += ("-t", "dhcp_server:server_port=1")
    ended = allosaur("run", "emu:dhcp_server", "emu:dhcp_clients", *words, "--json")
    assert ended.code == 0, ended
    loads = json.loads(ended.out)["loads"]
    assert [one["clients"]["ready"] for one in loads.values()] == [1, 100]


def test_two_profiles_that_want_one_namespace_are_refused(allosaur: Any) -> None:
    allosaur("run", "emu:ping", "emu:ipv6", "--local", "-d", "200ms").refused(
        "ping_hosts", "ipv6_hosts", "vlan"
    )
