"""Echo requests beside flows, through devices of the kernel, and against its hosts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

PATIENCE_S = 30
# Asks a host so many times, and says how many answers have all that was asked.
PING = """
import socket, struct, sys
to, count = sys.argv[1], int(sys.argv[2])
line = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
line.settimeout(10)
came = 0
for number in range(count):
    data = bytes(range(48))
    words = struct.unpack("!28H", struct.pack("!BBHHH", 8, 0, 0, 7, number) + data)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    line.sendto(struct.pack("!BBHHH", 8, 0, total ^ 0xFFFF, 7, number) + data, (to, 0))
    answer = b""
    while answer[:1] != bytes(1):
        answer = line.recv(2000)[20:]
    came += answer[4:8] == struct.pack("!HH", 7, number) and answer[8:] == data
print(came, "of", count, "came back")
"""
CLIENT, SERVER = "10.0.0.10", "10.0.1.2"


def wait_for(client: Any, is_enough: Callable[[dict[int, Any]], bool]) -> dict[int, Any]:
    """What each port counted, as soon as it is enough; "hist" with the rest."""
    until = time.monotonic() + PATIENCE_S
    while True:
        ports = client.get_latency_stats()
        stats = {port: {**measured["stats"], **measured["hist"]} for port, measured in ports.items()}
        if is_enough(stats):
            return stats
        assert time.monotonic() < until, stats
        time.sleep(0.02)


def received(packets: int) -> Callable[[dict[int, Any]], bool]:
    return lambda stats: all(port["m_pkt_ok"] >= packets for port in stats.values())


def sent(stats: dict[int, Any]) -> int:
    return sum(int(port["m_tx_pkt_ok"]) for port in stats.values())


def came(stats: dict[int, Any]) -> int:
    return sum(int(port["m_pkt_ok"]) for port in stats.values())


def stands_still() -> Callable[[dict[int, Any]], bool]:
    """Whether nothing is sent any more: 25 readings, half a second, are alike."""
    seen: list[int] = []

    def is_still(stats: dict[int, Any]) -> bool:
        seen.append(sent(stats))
        return len(seen) >= 25 and seen[-25] == seen[-1]

    return is_still


def all_came(stats: dict[int, Any]) -> bool:
    sent, came = ([port[name] for port in stats.values()] for name in ("m_tx_pkt_ok", "m_pkt_ok"))
    return bool(sent == came[::-1])


def send_to(client: Any, macs: dict[int, str]) -> None:
    """Let ports send to these MAC addresses."""
    client.set_service_mode(enabled=True)
    for port, mac in macs.items():
        client.set_l2_mode(port=port, dst_mac=mac)
    client.set_service_mode(enabled=False)


@pytest.mark.parametrize("kind", ["Router", "Nat"])
def test_through_a_device(kind: str, network: Any, devices: ModuleType, talks: ModuleType) -> None:
    device = getattr(devices, kind)(network)
    device.introduce(0, [10])
    with talks.generator(device.ports) as client:
        send_to(client, {port: device.mac(port) for port in (0, 1)})
        client.start_latency(mult=500, src_ipv4=CLIENT, dst_ipv4=SERVER)
        wait_for(client, received(200))
        client.stop_latency()
        ports = wait_for(client, all_came)
    for port in ports.values():
        assert port["m_seq_error"] == port["m_no_magic"] == port["m_no_id"] == 0
        assert port["m_l3_cs_err"] == port["m_l4_cs_err"] == port["m_length_error"] == 0
    kernel = device.counters()
    assert kernel["in0"] == ports[0]["m_tx_pkt_ok"]
    assert kernel["forwarded"] == ports[0]["m_pkt_ok"] + ports[1]["m_pkt_ok"]


def test_over_ipv6_with_a_profile(network: Any, devices: ModuleType, talks: ModuleType) -> None:
    router = devices.Router(network, ipv6=True)
    for link, host in ((0, "2001:db8::a00:a"), (1, "2001:db8:1::a00:102")):
        words = ("neighbor", "replace", host, "lladdr", network.mac(None, router.ports[link]))
        network.run(router.namespace, "ip", *words, "dev", router.far(link))
    # Hardly any flows: this is about what runs beside them.
    profile = talks.profile(
        talks.asks(b"-", 1),
        talks.answers(1, b"-"),
        clients=(CLIENT, "10.0.0.20"),
        servers=(SERVER, SERVER),
        cps=0.5,
        prefixes=("2001:db8:0::", "2001:db8:1::"),
    )
    with talks.generator(router.ports) as client:
        send_to(client, {port: router.mac(port) for port in (0, 1)})
        client.load_profile(profile)
        client.start(duration=1, nc=True, latency_pps=300, client_mask=1)
        client.wait_on_traffic(timeout=PATIENCE_S)
        ports = wait_for(client, all_came)
    assert ports[0]["m_tx_pkt_ok"] + ports[0]["m_tx_pkt_err"] == 300
    assert ports[0]["m_pkt_ok"] > 0
    for port in ports.values():
        assert port["m_seq_error"] == port["m_l4_cs_err"] == port["m_no_id"] == 0


def test_a_bad_link_is_seen_as_it_is(network: Any, talks: ModuleType, bad_link: Any) -> None:
    space = network.namespace("link")
    pairs = [network.veth(space) for _ in range(2)]
    faults = {"loss": 50, "reorder": 50, "duplicate": 50, "delay_ms": 5}
    with talks.generator([near for near, _ in pairs]) as client:
        with bad_link(space, (pairs[0][1], pairs[1][1]), **faults) as link:
            send_to(client, {port: network.mac(None, pairs[1 - port][0]) for port in (0, 1)})
            client.start_latency(mult=1000)
            wait_for(client, received(500))
            client.stop_latency()
            wait_for(client, stands_still())
        # The link has carried what was under way before it ended.
        passed = link.passed
        ports = wait_for(
            client, lambda stats: came(stats) + passed["lost"] == sent(stats) + passed["duplicated"]
        )
    both = {name: ports[0][name] + ports[1][name] for name in ports[0] if name != "histogram"}
    assert 0 < both["duplicates"] <= passed["duplicated"]
    # What was lost at the end, nobody misses.
    assert 0 < both["dropped"] <= passed["lost"]
    assert both["out_of_order"] > 0
    # The link counts from when it took a frame. Not to the microsecond: it has a clock of its own.
    assert min(port["min_usec"] for port in ports.values()) >= faults["delay_ms"] * 900


def echoes(host: Any) -> int:
    """The echo requests that a host got."""
    words = (line.split() for line in host.run("nstat", "-asz").splitlines())
    return next(int(word[1]) for word in words if word and word[0] == "IcmpInEchos")


def test_a_host_is_measured_there_and_back(network: Any, real: ModuleType, talks: ModuleType) -> None:
    host = real.Host(network, "there")
    before = echoes(host)
    with talks.generator([host.near, "dummy"], [host]) as client:
        client.start_latency(mult=500, src_ipv4=host.port_address, dst_ipv4=host.address)
        wait_for(client, received(200))
        client.stop_latency()
        ports = wait_for(client, lambda stats: stats[0]["m_tx_pkt_ok"] == stats[0]["m_pkt_ok"])
    assert list(ports) == [0], "a dummy port has no part in it"
    assert echoes(host) - before == ports[0]["m_tx_pkt_ok"]
    assert ports[0]["m_seq_error"] == ports[0]["m_no_id"] == 0


def test_a_host_may_ping_a_server_port(network: Any, real: ModuleType, talks: ModuleType) -> None:
    host = real.Host(network, "here", number=1)
    with talks.generator(["dummy", host.near], [host]) as client:
        client.start_latency(mult=1)
        said = host.run(sys.executable, "-c", PING, "48.0.0.1", "5")
        assert said.strip() == "5 of 5 came back"
        ports = wait_for(client, lambda stats: stats[1]["m_tx_pkt_ok"] == 5)
    assert (ports[1]["m_no_magic"], ports[1]["m_pkt_ok"]) == (5, 0)
