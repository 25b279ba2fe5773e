"""A thousand emulated clients and Kea: short leases, servers that are away, declined addresses, a relay."""

from __future__ import annotations

import csv
import json
from ipaddress import ip_address
from pathlib import Path
from types import ModuleType
from typing import Any

DHCP = {"timerd": 1, "timero": 1}
POOL = "10.1.0.1 - 10.1.9.255"
LONG = {"valid-lifetime": 600, "renew-timer": 300, "rebind-timer": 500}
LEASED, DECLINED = "0", "1"


def kea(host: Any, folder: Path, family: int, link: str, **more: Any) -> Any:
    """Kea on a host: leases of eight seconds, renewed after two and rebound after four."""
    subnet = {
        4: {"subnet": "10.1.0.0/16", "pools": [{"pool": POOL}]},
        6: {
            "subnet": "2001:db8:1::/64",
            "interface": link,
            "pools": [{"pool": "2001:db8:1::1000-2001:db8:1::ffff"}],
        },
    }[family]
    settings = {
        "interfaces-config": {"interfaces": [link]},
        "lease-database": {"type": "memfile", "name": str(folder / f"leases{family}"), "lfc-interval": 0},
        "valid-lifetime": 8,
        "renew-timer": 2,
        "rebind-timer": 4,
        f"subnet{family}": [subnet],
        **({"server-id": server_id("ab")} if family == 6 else {}),
        "loggers": [
            {
                "name": f"kea-dhcp{family}",
                "output_options": [{"output": "stdout"}],
                "severity": "INFO",
            }
        ],
        **more,
    }
    config = folder / f"kea{family}.conf"
    config.write_text(json.dumps({f"Dhcp{family}": settings}))
    environment = ["KEA_PIDFILE_DIR=/run/kea", "KEA_LOCKFILE_DIR=none"]
    ready = f"DHCP{family}_STARTED"
    return host.daemon(folder, ready, f"kea-dhcp{family}", "-c", str(config), environment=environment)


def server_id(identifier: str) -> dict[str, Any]:
    """A DUID that is written nowhere."""
    return {"type": "EN", "enterprise-id": 9, "identifier": identifier, "persist": False}


def leases(folder: Path, family: int = 4, state: str = LEASED) -> dict[bytes, str]:
    """Kea's own table: the MAC addresses (of DHCPv6 in DUIDs) that have addresses; its last line counts."""
    with (folder / f"leases{family}").open(newline="") as file:
        last = {row["address"]: row for row in csv.DictReader(file)}
    return {
        ip_address(address).packed: (row["hwaddr"] if family == 4 else row["duid"])[-17:]
        for address, row in last.items()
        if row["state"] == state and row["valid_lifetime"] != "0"
    }


def by_address(addresses: dict[str, bytes]) -> dict[bytes, str]:
    return {address: mac for mac, address in addresses.items()}


def test_leases_of_seconds_are_renewed_and_end_and_come_back(
    network: Any, doors: Any, daemons: ModuleType, tmp_path: Path
) -> None:
    host = daemons.Host(network, doors, "kea")
    numbers = daemons.numbers()
    both = {4: ("dhcp", "ipv4"), 6: ("dhcpv6", "dhcp_ipv6")}
    servers = [kea(host, tmp_path, family, host.link) for family in both]
    with servers[0], servers[1], daemons.segment(doors, host.near) as segment:
        segment.add(numbers, {"arp": {}, "ipv6": {}, "dhcp": DHCP, "dhcpv6": DHCP})
        for family, (plugin, field) in both.items():
            found = segment.await_addresses(numbers, field)
            segment.agree(lambda family=family: leases(tmp_path, family), by_address(found))
            segment.await_counters(f"{plugin}_client_cnt", numbers, pktRxRenew=1, pktRxAck=2)
        for server in servers:
            server.stop()
        # Nobody uses what is not leased any more.
        segment.await_each(
            numbers,
            lambda some: [not any(info["ipv4"] + info["dhcp_ipv6"]) for info in segment.infos(some)],
        )
        for server in servers:
            server.start()
        for family, (_, field) in both.items():
            found = segment.await_addresses(numbers, field)
            assert len(set(found.values())) == len(numbers)
            assert by_address(found).items() <= leases(tmp_path, family).items()


def test_a_twentieth_of_all_frames_may_be_lost(
    network: Any, doors: Any, daemons: ModuleType, bad_link: Any, tmp_path: Path
) -> None:
    host = daemons.Host(network, doors, "kea")
    near, wire, ends = daemons.across(network, host)
    numbers = daemons.numbers()
    with (
        kea(host, tmp_path, 4, host.link, **LONG),
        kea(host, tmp_path, 6, host.link, **LONG),
        bad_link(wire, ends, loss=50) as link,
        daemons.segment(doors, near) as segment,
    ):
        segment.add(numbers, {"arp": {}, "ipv6": {}, "dhcp": DHCP, "dhcpv6": DHCP})
        for family, field in ((4, "ipv4"), (6, "dhcp_ipv6")):
            found = segment.await_addresses(numbers, field)
            segment.agree(lambda family=family: leases(tmp_path, family), by_address(found))
    assert link.passed["lost"] > 0


def test_a_server_with_another_name_rebinds_leases(
    network: Any, doors: Any, daemons: ModuleType, tmp_path: Path
) -> None:
    host = daemons.Host(network, doors, "kea")
    numbers = daemons.numbers()
    counts = "dhcpv6_client_cnt"
    with daemons.segment(doors, host.near) as segment:
        with kea(host, tmp_path, 6, host.link):
            segment.add(numbers, {"ipv6": {}, "dhcpv6": DHCP})
            before = segment.await_addresses(numbers, "dhcp_ipv6")
        with kea(host, tmp_path, 6, host.link, **{"server-id": server_id("cd")}):
            acks = max(one["pktRxAck"] for one in segment.counters(counts, numbers))
            segment.await_counters(counts, numbers, pktRxRebind=1, pktRxAck=acks + 1)
            after = segment.await_addresses(numbers, "dhcp_ipv6")
            assert after == before
            segment.agree(lambda: leases(tmp_path, 6), by_address(after))


def test_addresses_that_others_have_are_declined(
    network: Any, doors: Any, daemons: ModuleType, tmp_path: Path
) -> None:
    host = daemons.Host(network, doors, "kea")
    numbers = daemons.numbers()
    with kea(host, tmp_path, 4, host.link, **LONG), daemons.segment(doors, host.near) as segment:
        others = range(5001, 5021)
        taken = {doors.ipv4(number - 5000): number for number in others}
        segment.add(others, {"arp": {}}, ipv4=lambda number: doors.ipv4_bytes(doors.ipv4(number - 5000)))
        segment.add(numbers, {"arp": {}, "dhcp": DHCP})
        # Who declined an address waits ten seconds before it asks again (RFC 2131, section 3.1).
        found = segment.await_addresses(numbers)
        declined = leases(tmp_path, 4, DECLINED)
        assert declined and set(declined) <= {ip_address(address).packed for address in taken}
        segment.agree(lambda: leases(tmp_path), by_address(found))
        assert not set(found.values()) & {ip_address(address).packed for address in taken}


def test_leases_come_through_a_relay(network: Any, doors: Any, daemons: ModuleType, tmp_path: Path) -> None:
    host = daemons.Host(network, doors, "relay")
    numbers = daemons.numbers()
    machine, link, uplink = host.uplink(network, "kea")
    interfaces = {"interfaces": [link], "dhcp-socket-type": "udp"}
    routers = [{"name": "routers", "data": daemons.HOST_IPV4}]
    more = {"interfaces-config": interfaces, "option-data": routers}
    server = kea(machine, tmp_path, 4, link, **more)
    words = ["-4", "-d", "-a", "-id", host.link, "-iu", uplink, "10.2.0.2"]
    relay = host.daemon(tmp_path, "Sending on", "dhcrelay", *words)
    with server, relay, daemons.segment(doors, host.near) as segment:
        segment.add(numbers, {"arp": {}, "dhcp": DHCP})
        found = segment.await_addresses(numbers)
        segment.agree(lambda: leases(tmp_path), by_address(found))
        # Renewals go to the server itself, by way of the router.
        segment.await_counters("dhcp_client_cnt", numbers, pktRxRenew=1, pktRxAck=2)
