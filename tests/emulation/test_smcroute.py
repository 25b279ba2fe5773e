"""Groups of emulated clients behind a multicast router of Linux: SMCRoute, and a bridge that snoops."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PORT = 5001
# Groups that the router forwards, and of them those that a client joins.
GROUPS, JOINED = 8, 5
ETH_P_ALL = 3
# Queries each second, so that the bridge learns soon.
BRIDGE = (
    *("mcast_snooping", "1", "mcast_querier", "1", "mcast_igmp_version", "3", "mcast_mld_version", "2"),
    *(
        "mcast_query_interval",
        "100",
        "mcast_startup_query_interval",
        "100",
        "mcast_last_member_interval",
        "20",
    ),
)
METHODS = {4: "igmp_ns", 6: "ipv6_mld_ns"}
#: Sends a datagram to each group from a machine behind the router.
SENDER = """
import socket, sys
family, link, ttl, *groups = sys.argv[1:]
of = socket.AF_INET if family == "4" else socket.AF_INET6
sender = socket.socket(of, socket.SOCK_DGRAM)
if family == "4":
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, int(ttl))
else:
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, int(ttl))
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex(link))
for group in groups:
    sender.sendto(group.encode(), (group, PORT))
""".replace("PORT", str(PORT))


def group(family: int, number: int) -> Any:
    return (IPv4Address("239.1.0.0") if family == 4 else IPv6Address("ff35::1:0")) + number


class Router:
    """A bridge towards the clients, and routes of groups from an uplink to it."""

    def __init__(self, network: Any, doors: Any, daemons: ModuleType, folder: Path) -> None:
        self.host = daemons.Host(network, doors, "router")
        self.sender, self.sender_link, uplink = self.host.uplink(network, "sender")
        host = self.host
        host.write("ipv6/conf/default/accept_dad", "0")
        host.run("ip", "link", "add", "name", "switch", "type", "bridge", *BRIDGE)
        host.run("ip", "link", "set", host.link, "master", "switch")
        host.run("ip", "link", "set", "switch", "up")
        for link in ("switch", uplink):
            host.write(f"ipv6/conf/{link}/disable_ipv6", "0")
            host.write(f"ipv6/conf/{link}/forwarding", "1")
        host.write("ipv6/conf/all/forwarding", "1")
        host.run("ip", "address", "add", "10.1.0.1/16", "dev", "switch")
        host.run("ip", "-6", "address", "add", "2001:db8:1::2/64", "dev", "switch", "nodad")
        host.run("ip", "-6", "address", "add", "2001:db8:2::1/64", "dev", uplink, "nodad")
        self.sender.write(f"ipv6/conf/{self.sender_link}/disable_ipv6", "0")
        self.sender.run("ip", "-6", "address", "add", "2001:db8:2::2/64", "dev", self.sender_link, "nodad")
        config = folder / "smcroute.conf"
        rules = [f"phyint {link} enable\n" for link in (uplink, "switch")]
        for source, family in (("10.2.0.2", 4), ("2001:db8:2::2", 6)):
            rules += [
                f"mroute from {uplink} source {source} group {group(family, number)} to switch\n"
                for number in range(GROUPS)
            ]
        config.write_text("".join(rules), encoding="utf-8")
        self.folder = folder
        words = ["-n", "-N", "-f", str(config), "-l", "info", "-P", str(folder / "pid")]
        self.daemon = host.daemon(folder, "Ready, waiting for client request", "smcrouted", *words)

    def send(self, family: int) -> None:
        """Let the machine behind the router send to all groups."""
        groups = [str(group(family, number)) for number in range(GROUPS)]
        self.sender.run("python3", "-c", SENDER, str(family), self.sender_link, "4", *groups)

    def members(self) -> set[Any]:
        """The groups that the bridge knows behind our link."""
        shown = json.loads(self.host.run("bridge", "-j", "mdb", "show", "dev", "switch"))
        entries = [entry for part in shown for entry in part["mdb"]]
        return {ip_address(entry["grp"]) for entry in entries if entry["port"] == self.host.link}


class Listener:
    """Frames that come to our end of a link: to which groups datagrams of the sender were."""

    def __init__(self, link: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._socket.bind((link, 0))
        self._socket.settimeout(0.2)

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()

    def groups(self) -> Iterator[Any]:
        """Those that came, until there is a pause."""
        while True:
            try:
                frame = self._socket.recv(2000)
            except TimeoutError:
                return
            (kind,) = struct.unpack_from("!H", frame, 12)
            udp = 34 if kind == 0x0800 else 54
            is_udp = (kind == 0x0800 and frame[23] == 17) or (kind == 0x86DD and frame[20] == 17)
            if is_udp and struct.unpack_from("!H", frame, udp + 2) == (PORT,):
                yield ip_address(frame[30:34] if kind == 0x0800 else frame[38:54])


@pytest.mark.parametrize("family", [4, 6])
def test_a_router_reaches_the_groups_that_clients_have_joined(
    network: Any, doors: Any, daemons: ModuleType, tmp_path: Path, family: int
) -> None:
    daemons.path("smcrouted")
    router = Router(network, doors, daemons, tmp_path)
    joined = [group(family, number) for number in range(JOINED)]
    own = {group(family, number) for number in range(GROUPS)}
    init = {"dmac": doors.mac(1)}
    with (
        router.daemon,
        daemons.segment(doors, router.host.near, igmp=init, ipv6=init) as segment,
        Listener(router.host.near) as listener,
    ):
        segment.add([1], {"arp": {}, "igmp": {}, "ipv6": {}}, ipv4=doors.ipv4_bytes(doors.ipv4(1)))

        def change(verb: str, groups: list[Any]) -> None:
            vec = [list(one.packed) for one in groups]
            segment.door.call(f"{METHODS[family]}_{verb}", tun=segment.tunnel, vec=vec)

        def reached() -> set[Any]:
            router.send(family)
            return set(listener.groups())

        change("add", joined)
        segment.agree(lambda: router.members() & own, set(joined))
        segment.agree(reached, set(joined))
        change("remove", joined[1:])
        segment.agree(lambda: router.members() & own, set(joined[:1]))
        segment.agree(reached, set(joined[:1]))
