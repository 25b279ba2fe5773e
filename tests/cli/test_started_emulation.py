"""`allosaur start` and `stop` with emulated clients, against a server with two ports that are joined."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from allosaur.server import LocalServer

EMULATION = "allosaur_emulation_"


@pytest.fixture(scope="module")
def emulating(binary: str) -> Iterator[LocalServer]:
    with LocalServer(emu=True, binary=binary) as server:
        yield server


@pytest.fixture
def at(emulating: LocalServer) -> list[str]:
    address = f"{emulating.host}:{emulating.rpc_port}"
    return ["--server", address, "--pub-port", str(emulating.pub_port)]


def test_clients_are_started_and_stay_until_they_are_stopped_by_name(
    allosaur: Callable[..., Any], emulating: LocalServer, at: list[str]
) -> None:
    here = [*at, "--emu-port", str(emulating.emu_port)]
    started = allosaur("start", "ping_hosts", "-t", "clients=3", *here)
    assert started.code == 0, started
    assert "Emulating 6 clients in 2 namespaces, until they are stopped." in started.out
    assert f"allosaur stop --server {emulating.host}:{emulating.rpc_port}" in started.out
    assert " --emu  " in started.out
    allosaur("start", "ping_hosts", *here).failed(
        3, "6 clients are emulated already", "stop --emu", "--force"
    )
    replaced = allosaur("start", "ping_hosts", "-t", "clients=1", "--force", *here, "--json").json()
    assert (replaced["clients"], replaced["namespaces"]) == (2, 2)
    # Other traffic is stopped without them.
    assert allosaur("stop", *here).out == "Nothing ran.\n"
    stopped = allosaur("stop", "--emu", *here, "--json").json()
    assert stopped["clients"] == 2
    assert [one["vport"] for one in stopped["stopped"]] == [0, 1]
    assert allosaur("stop", "--emu", *here).out == "Nothing ran.\n"
    again = allosaur("start", "ping_hosts", "-t", "clients=3", *here)
    assert again.code == 0, again
    assert allosaur("stop", "--emu", *here).out == "Stopped emulating 6 clients in 2 namespaces.\n"


def test_frames_of_clients_are_in_the_registry(
    allosaur: Callable[..., Any], emulating: LocalServer, at: list[str]
) -> None:
    here = [*at, "--emu-port", str(emulating.emu_port)]
    assert allosaur("start", "emu:ping", "-t", "clients=3", *here).code == 0

    def sent() -> int:
        told = allosaur("stats", "--metrics", "port_packets", *at, "--json").json()
        (metric,) = told["metrics"].values()
        assert (metric["kind"], metric["unit"]) == ("counter", "packets")
        wanted = {"port": "0", "direction": "tx"}
        return int(next(one["value"] for one in metric["series"] if one["labels"] == wanted))

    until = time.monotonic() + 60
    while not sent():
        assert time.monotonic() < until, "the clients asked for no gateway"
    allosaur("stats", "--metrics", "port_packet", "no_such", *at).refused("no_such")
    assert allosaur("stop", "--emu", *here).code == 0


def test_what_clients_count_is_seen_beside_other_traffic(
    allosaur: Callable[..., Any], emulating: LocalServer, at: list[str]
) -> None:
    here = [*at, "--emu-port", str(emulating.emu_port)]
    assert allosaur("start", "emu:ping", "-t", "clients=3", *here).code == 0

    def until(is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end_s = time.monotonic() + 60
        while not is_so(told := allosaur("stats", *at, "--json").json()):
            assert time.monotonic() < end_s, told
        return told

    def ready(told: dict[str, Any]) -> bool:
        series = (
            told.get("emulation", {}).get("metrics", {}).get(f"{EMULATION}ready_clients", {}).get("series")
        )
        return bool(series) and series[0]["value"] == 6

    told = until(ready)
    assert told["emulation"]["clients"] == 6
    assert told["emulation"]["metrics"][f"{EMULATION}arp_pkt_tx_arp_query"]["series"][0]["value"] > 0
    shown = allosaur("stats", *at).out
    assert "arp_pkt_tx_arp_query" in shown and "sent packets" in shown
    assert "Emulated: 2 namespaces, 6 clients, 6 ready" in allosaur("status", *at).out
    top = allosaur("top", "--once", *at).out
    assert "emulated  2 namespaces, 6 clients, 6 ready" in top
    assert "arp_pkt_tx_arp_query" in top[top.index("Emulated clients") :]
    assert allosaur("top", "--once", "--json", *at).json()["emulation"]["clients"] == 6
    assert allosaur("stop", "--emu", *here).code == 0
    until(lambda told: "emulation" not in told)
    assert "mulated" not in allosaur("status", *at).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "2"], "--multiplier"),
        (["-d", "1"], "--duration"),
        (["--ports", "0"], "--ports"),
        (["--nc"], "--nc"),
        (["--record-flows", "1s"], "--record-flows"),
        (["--emu-port", "0"], "--emu-port"),
    ],
)
def test_what_clients_do_not_have_is_refused(
    allosaur: Callable[..., Any], at: list[str], words: list[str], said: str
) -> None:
    allosaur("start", "ping_hosts", *words, *at).refused(said)


def test_what_is_named_at_once_is_one_kind(allosaur: Callable[..., Any], at: list[str]) -> None:
    allosaur("stop", "--emu", "--pid", "web", *at).refused("--emu", "not allowed with")


def test_a_server_without_emulated_clients_says_what_to_do(
    allosaur: Callable[..., Any], at: list[str]
) -> None:
    for words in (["start", "ping_hosts"], ["stop", "--emu"]):
        allosaur(*words, *at, "--emu-port", "1").failed(3, "no emulated clients at", "allosaur server --emu")
