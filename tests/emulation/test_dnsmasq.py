"""A thousand emulated clients and dnsmasq: leases, names, and what goes wrong between them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

LEASES = "leases"
# What comes within a second is asked for again after one.
DHCP = {"timerd": 1, "timero": 1}
PLUGINS = {"arp": {}, "dhcp": DHCP}
# At each lease dnsmasq makes its table of all names anew.
NAMED = 200
DEAF = """table ip deaf { chain input {
type filter hook input priority 0
ip daddr 10.1.255.254 udp dport 67 drop
}
}
"""


@pytest.fixture
def host(network: Any, doors: Any, daemons: ModuleType) -> Any:
    daemons.path("dnsmasq")
    return daemons.Host(network, doors, "dnsmasq")


def dnsmasq(host: Any, folder: Path, *options: str) -> Any:
    """dnsmasq on a host; leases are two minutes long, its shortest."""
    words = [
        "--keep-in-foreground",
        "--log-facility=-",
        "--conf-file=/dev/null",
        "--user=root",
        "--pid-file=",
        "--no-resolv",
        "--no-hosts",
        f"--interface={host.link}",
        "--bind-interfaces",
        "--dhcp-authoritative",
        "--dhcp-lease-max=5000",
        f"--dhcp-leasefile={folder / LEASES}",
        *options,
    ]
    return host.daemon(folder, "started, version", "dnsmasq", *words)


def pool(first: str, last: str) -> str:
    return f"--dhcp-range={first},{last},255.255.0.0,2m"


def leases(folder: Path) -> dict[str, bytes]:
    """dnsmasq's own table: the addresses that MAC addresses have."""
    lines = [line.split() for line in (folder / LEASES).read_text().splitlines()]
    return {mac: IPv4Address(address).packed for _, mac, address, *_ in lines}


def named(number: int) -> dict[str, Any]:
    """Plugins of a client that tells its name, if it is one of the first, and asks for names."""
    option = [12, *f"host-{number}".encode()]
    dhcp = {**DHCP, "options": {"dis": [option], "req": [option]}} if number <= NAMED else DHCP
    return {"arp": {}, "dhcp": dhcp, "transport": {}, "dns": {"dns_server_ip": "10.1.255.254"}}


def test_a_thousand_lease_addresses_and_find_each_other_by_name(
    host: Any, doors: Any, daemons: ModuleType, memory: Path
) -> None:
    numbers = daemons.numbers()
    options = [pool("10.1.0.1", "10.1.9.255"), "--no-ping", "--domain=lan", "--dhcp-ttl=60"]
    with dnsmasq(host, memory, *options), daemons.segment(doors, host.near) as segment:
        segment.add(numbers, named)
        addresses = segment.await_addresses(numbers)
        assert len(set(addresses.values())) == len(numbers)
        segment.agree(lambda: leases(memory), addresses)
        for counters in segment.counters("dhcp_client_cnt", numbers):
            assert {name for name in counters if "Err" in name or "Wrong" in name} == set()
        segment.await_gateways(numbers)
        asked = {number: number % NAMED + 1 for number in numbers}

        def answers(some: Sequence[int]) -> list[str | None]:
            segment.each("dns_c_query", some, queries=lambda number: [{"name": f"host-{asked[number]}.lan"}])
            pages = segment.each("dns_c_cache_iter", some, reset=True, count=10)
            return [page["data"][0]["answer"] if page["data"] else None for page in pages]

        for number, answer in segment.await_each(numbers, answers).items():
            assert IPv4Address(answer).packed == addresses[daemons.text(doors.mac(asked[number]))]


def test_leases_are_renewed_survive_a_restart_and_are_refused_after_a_move(
    host: Any, doors: Any, daemons: ModuleType, memory: Path
) -> None:
    # Renewals every two seconds: it writes its whole table at each.
    numbers = daemons.numbers(300)
    times = ["--no-ping", "--dhcp-option-force=option:T1,2", "--dhcp-option-force=option:T2,6"]
    server = dnsmasq(host, memory, pool("10.1.0.1", "10.1.9.255"), *times)
    with daemons.segment(doors, host.near) as segment:
        with server:
            segment.add(numbers, PLUGINS)
            before = segment.await_addresses(numbers)
            segment.await_counters("dhcp_client_cnt", numbers, pktRxRenew=1, pktRxAck=2)
            server.stop()
            server.start()
            counters = segment.counters("dhcp_client_cnt", numbers)
            acks = max(one["pktRxAck"] for one in counters)
            segment.await_counters("dhcp_client_cnt", numbers, pktRxAck=acks + 1)
            # What goes to the server alone is lost: they ask all servers.
            host.network.run(host.namespace, daemons.path("nft"), "-f", "-", typed=DEAF)
            segment.await_counters("dhcp_client_cnt", numbers, pktRxRebind=1)
            acks = max(one["pktRxAck"] for one in segment.counters("dhcp_client_cnt", numbers))
            counters = segment.await_counters("dhcp_client_cnt", numbers, pktRxAck=acks + 1)
            assert segment.addresses(numbers) == before
            segment.agree(lambda: leases(memory), before)
            assert not any("pktRxNack" in one for one in counters)
        host.run(daemons.path("nft"), "delete", "table", "ip", "deaf")
        (memory / LEASES).unlink()
        with dnsmasq(host, memory, pool("10.1.32.1", "10.1.41.255"), *times):
            segment.await_counters("dhcp_client_cnt", numbers, pktRxNack=1)
            after = segment.await_addresses(numbers)
            segment.agree(lambda: leases(memory), after)
            assert not set(before.values()) & set(after.values())


def test_a_starved_pool_serves_whom_it_can_and_the_rest_asks_politely(
    host: Any, doors: Any, daemons: ModuleType, memory: Path
) -> None:
    numbers, size = daemons.numbers(), 200
    with (
        dnsmasq(host, memory, pool("10.1.0.1", f"10.1.0.{size}"), "--no-ping"),
        daemons.segment(doors, host.near) as segment,
    ):
        begin = time.monotonic()
        segment.add(numbers, PLUGINS)
        bound = doors.await_it(
            lambda: addresses if len(addresses := segment.addresses(numbers)) == size else None,
            "the pool was never given out",
        )
        segment.agree(lambda: leases(memory), bound)
        rest = [number for number in numbers if daemons.text(doors.mac(number)) not in bound]
        segment.await_counters("dhcp_client_cnt", rest, pktTxDiscover=3)
        seconds = time.monotonic() - begin
        for counters in segment.counters("dhcp_client_cnt", rest):
            # One at the beginning, one a second, one for each refusal: somebody else was faster.
            assert counters["pktTxDiscover"] <= 2 + seconds + counters.get("pktRxNack", 0)
        # Who gives an address back makes room for another.
        gone = [number for number in numbers if daemons.text(doors.mac(number)) in bound][:50]
        segment.remove(gone)
        now = doors.await_it(
            lambda: addresses if len(addresses := segment.addresses(rest)) == len(gone) else None,
            "what was given back was not given out again",
        )
        assert set(now.values()) == {bound[daemons.text(doors.mac(number))] for number in gone}
        segment.agree(lambda: len(leases(memory)), size)


def test_a_twentieth_of_all_frames_may_be_lost(
    network: Any, host: Any, doors: Any, daemons: ModuleType, bad_link: Any, memory: Path
) -> None:
    numbers = daemons.numbers()
    near, wire, ends = daemons.across(network, host)
    with (
        dnsmasq(host, memory, pool("10.1.0.1", "10.1.9.255"), "--no-ping"),
        bad_link(wire, ends, loss=50) as link,
        daemons.segment(doors, near) as segment,
    ):
        segment.add(numbers, PLUGINS)
        found = segment.await_addresses(numbers)
        segment.agree(lambda: leases(memory), found)
    assert link.passed["lost"] > 0


def test_an_address_that_answers_is_not_offered(
    host: Any, doors: Any, daemons: ModuleType, memory: Path
) -> None:
    with (
        dnsmasq(host, memory, pool("10.1.0.1", "10.1.0.4")),
        daemons.segment(doors, host.near) as segment,
    ):
        segment.add(
            range(1, 4), {"arp": {}, "icmp": {}}, ipv4=lambda number: doors.ipv4_bytes(doors.ipv4(number))
        )
        # dnsmasq waits three seconds for an answer to its echo request.
        segment.add([9], {"arp": {}, "dhcp": {}})
        assert list(segment.await_addresses([9]).values()) == [IPv4Address("10.1.0.4").packed]
        assert segment.counters("dhcp_client_cnt", [9])[0]["pktTxDiscover"] >= 1
