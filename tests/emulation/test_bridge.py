"""A thousand groups of emulated clients at a bridge of Linux that snoops and asks: IGMP and MLD."""

from __future__ import annotations

import json
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import ModuleType
from typing import Any

import pytest

GROUPS = 1000
# Of a namespace, and of its table of groups.
FAMILIES = {"igmp": "igmp_ns", "ipv6": "ipv6_mld_ns"}
# Queries each second, and what is not heard of for three seconds is forgotten; in hundredths of seconds.
TIMES = {
    "mcast_query_interval": 100,
    "mcast_query_response_interval": 50,
    "mcast_membership_interval": 300,
    "mcast_last_member_interval": 20,
    "mcast_startup_query_interval": 100,
}


def bridge(host: Any, igmp: int, mld: int) -> None:
    """Make a host a switch: a bridge over its link that asks in these versions."""
    settings = {
        "mcast_snooping": 1,
        "mcast_querier": 1,
        "mcast_hash_max": 8192,
        "mcast_igmp_version": igmp,
        "mcast_mld_version": mld,
        **TIMES,
    }
    words = [str(word) for setting in settings.items() for word in setting]
    host.write("ipv6/conf/default/accept_dad", "0")
    host.run("ip", "link", "add", "name", "switch", "type", "bridge", *words)
    host.run("ip", "link", "set", host.link, "master", "switch")
    host.run("ip", "link", "set", "switch", "up")


def table(host: Any) -> dict[str, dict[str, Any]]:
    """The bridge's own table: groups behind our link, and their sources."""
    shown = json.loads(host.run("bridge", "-j", "-d", "mdb", "show", "dev", "switch"))
    found: dict[str, dict[str, Any]] = {}
    for entry in (entry for part in shown for entry in part["mdb"]):
        if entry["port"] == host.link and "src" not in entry:
            found[entry["grp"]] = entry
    return found


def group(family: str, number: int) -> Any:
    first = IPv4Address("239.1.0.0") if family == "igmp" else IPv6Address("ff05::1:0")
    return first + number


class Member:
    """A namespace as a member of groups of one family, and what the bridge knows of it."""

    def __init__(self, host: Any, segment: Any, family: str) -> None:
        self._host = host
        self._segment = segment
        self.family = family
        self.every = [group(family, number) for number in range(GROUPS)]

    def change(self, verb: str, groups: Sequence[Any]) -> None:
        """Join groups ("add") or leave them ("remove")."""
        for first in range(0, len(groups), 250):
            vec = [list(one.packed) for one in groups[first : first + 250]]
            method = f"{FAMILIES[self.family]}_{verb}"
            self._segment.door.call(method, tun=self._segment.tunnel, vec=vec)

    def counter(self, name: str) -> int:
        counters = self._segment.door.counters(f"{self.family}_ns_cnt", tun=self._segment.tunnel)
        return int(counters.get(name, 0))

    def await_count(self, name: str, least: int) -> None:
        self._segment.door.await_counter(name, least, f"{self.family}_ns_cnt", tun=self._segment.tunnel)

    def known(self) -> set[Any]:
        """The groups of this member that the bridge knows."""
        return {ip_address(name) for name in table(self._host)} & set(self.every)


@pytest.mark.parametrize(("igmp", "mld"), [(3, 2), (2, 1)], ids=["new", "old"])
def test_a_bridge_learns_keeps_and_forgets_a_thousand_groups(
    network: Any, doors: Any, daemons: ModuleType, igmp: int, mld: int
) -> None:
    host = daemons.Host(network, doors, "switch")
    bridge(host, igmp, mld)
    init = {family: {"dmac": doors.mac(1)} for family in FAMILIES}
    queried = {
        "igmp": "pktRxv3Queries" if igmp == 3 else "pktRxv1v2Queries",
        "ipv6": f"pktRxv{mld}Queries",
    }
    with daemons.segment(doors, host.near, **init) as segment:
        segment.add([1], {"igmp": {}, "ipv6": {}}, ipv4=doors.ipv4_bytes(doors.ipv4(1)))
        members = [Member(host, segment, family) for family in FAMILIES]
        for member in members:
            member.await_count(queried[member.family], 1)
            member.change("add", member.every)
        for member in members:
            segment.agree(member.known, set(member.every))
        # Longer than the bridge remembers who does not answer.
        before = {member.family: member.counter("pktRxgenQueries") for member in members}
        for member in members:
            member.await_count("pktRxgenQueries", before[member.family] + 5)
            assert member.known() == set(member.every)
            member.change("remove", member.every[: GROUPS // 2])
        for member in members:
            segment.agree(member.known, set(member.every[GROUPS // 2 :]))


@pytest.mark.parametrize("family", ["igmp", "ipv6"])
def test_a_bridge_learns_the_sources_of_groups(
    network: Any, doors: Any, daemons: ModuleType, family: str
) -> None:
    host = daemons.Host(network, doors, "switch")
    bridge(host, 3, 2)
    init = {family: {"dmac": doors.mac(1)}}
    source = ip_address("10.2.0.1") if family == "igmp" else ip_address("2001:db8:2::1")
    with daemons.segment(doors, host.near, **init) as segment:
        segment.add([1], {family: {}}, ipv4=doors.ipv4_bytes(doors.ipv4(1)))
        pairs = [
            {"g": list(group(family, number).packed), "s": list((source + extra).packed)}
            for number in range(100)
            for extra in range(3)
        ]
        segment.door.call(f"{FAMILIES[family]}_sg_add", tun=segment.tunnel, vec=pairs)

        def sources(count: int) -> bool:
            entries = table(host)
            expected = {str(source + extra) for extra in range(count)}
            return all(
                {one["address"] for one in entries.get(str(group(family, number)), {}).get("source_list", [])}
                == expected
                for number in range(100)
            )

        doors.await_it(lambda: sources(3), "the bridge never knew all sources")
        gone = [pair for pair in pairs if pair["s"] == list((source + 2).packed)]
        segment.door.call(f"{FAMILIES[family]}_sg_remove", tun=segment.tunnel, vec=gone)
        doors.await_it(lambda: sources(2), "the bridge never forgot a source")
