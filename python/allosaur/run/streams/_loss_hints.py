"""What to look at when a run lost packets: facts about the ports, in sentences.

A port whose packets all got lost has most often nobody who takes them: a MAC address that is not the
device's, a route that is missing, a link that is down.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from allosaur.report._counters import PortCounters
from allosaur.report._streams import Direction
from allosaur.run.streams._counts import StreamCounts, pair_of

if TYPE_CHECKING:
    from allosaur import STLClient
    from allosaur.client._port import Port

_FRAME_BYTES_USUAL = 1500 + 14 + 4
"""With FCS, of the usual MTU."""
_MACS_SHOWN = 3


class Links:
    """The links of ports, watched from the start of the traffic on."""

    def __init__(self, client: STLClient, ports: Sequence[int]) -> None:
        self._client = client
        self._ports = list(ports)
        self._start_s = time.monotonic()

    def changes(self) -> list[str]:
        """Return what happened to links until now, in words."""
        found = []
        for number in self._ports:
            for change in list(self._client.get_port(number).link_changes):
                if change.at_s >= self._start_s:
                    after = f"{change.at_s - self._start_s:.1f} s after the start"
                    found.append(f"the link of port {number} {change.words} {after}")
        return found


def hints(client: STLClient, counts: StreamCounts) -> list[str]:
    """Return what to look at for each direction of which nothing arrived."""
    said: dict[str, None] = {}
    for one in counts.directions:
        if one.sent_packets and one.lost_packets == one.sent_packets:
            said |= dict.fromkeys(_of_direction(client, one, counts))
    return list(said)


def _of_direction(client: STLClient, one: Direction, counts: StreamCounts) -> list[str]:
    counters = counts.counters
    port, peer = client.get_port(one.port), client.ports.get(pair_of(one.port))
    if peer is None:
        return _addresses(client, port)
    said = [
        f"the link of port {end.port_id} is down: bring it and what it is joined to up"
        for end in (port, peer)
        if not end.is_link_up
    ]
    if "memory" in (port.info.get("driver"), peer.info.get("driver")):
        ports = " and ".join(
            f"port {end.port_id} ({end.info.get('description', 'port')})" for end in (port, peer)
        )
        return [
            *said,
            f"{ports} are ports in memory: they need to be joined to each other, and their link must not "
            f"lose everything (`loss`)",
        ]
    said += _addresses(client, port)
    said += _sizes(one.port, counters)
    other = counters[peer.port_id].rx_packets if peer.port_id in counters else 0
    there = f"; it received {other:,} others" if other else ""
    said.append(
        f"look at what arrives at the other end: `allosaur capture --rx {peer.port_id}`{there}; "
        f"nothing there: the device has no route to the packets' destination, or drops them"
    )
    back = counters[port.port_id].rx_packets - counts.own(port.port_id)
    if back > 0:
        said.append(
            f"port {port.port_id} received {back:,} packets that are not of this run: an ICMP error among "
            f"them says why the device forwards nothing (`allosaur capture --rx {port.port_id} -f icmp -n 5`)"
        )
    return said


def _addresses(client: STLClient, port: Port) -> list[str]:
    """Return where frames go, if that may be nobody who forwards them."""
    number, streams = port.port_id, list(port.streams.values())
    if streams and all(stream.is_explicit_dst_mac() for stream in streams):
        named = sorted({stream.get_pkt()[:6].hex(":") for stream in streams})
        shown = ", ".join(named[:_MACS_SHOWN]) + (", ..." if len(named) > _MACS_SHOWN else "")
        return [
            f"frames of port {number} go to {shown}, as the profile says: is that the device on this link?"
        ]
    if port.is_l3 and not port.is_resolved:
        return [
            f"the gateway {port.dst_ipv4} of port {number} does not answer: `allosaur arp --port {number}`"
        ]
    if port.is_l3:
        return [
            f"frames of port {number} go to its gateway {port.dst_ipv4} ({port.dst_mac}): it needs a route "
            f"to the packets' destination, and its neighbor there an answer to ARP"
        ]
    owners = {other.src_mac: owner for owner, other in client.ports.items()}
    owner = owners.get(port.dst_mac or "")
    if owner is not None and owner != number:
        return [
            f"frames of port {number} go to {port.dst_mac}, the MAC address of port {owner}: right through a "
            f"cable or a bridge, but a router takes only frames to its own; give the port an address and a "
            f"gateway (`allosaur arp --port {number} --source ADDRESS --gateway ADDRESS`, or `ip` and "
            f"`gateway` in the configuration)"
        ]
    return [f"frames of port {number} go to {port.dst_mac}: is that the device on this link?"]


def _sizes(port: int, counters: Mapping[int, PortCounters]) -> list[str]:
    """Return that frames are as long as an MTU of 1,500 allows, or longer."""
    sizes = counters[port].tx_by_size or {}
    large = sum(count for name, count in sizes.items() if int(name.split("-")[0]) > _FRAME_BYTES_USUAL)
    if not large:
        return []
    return [
        f"{large:,} frames were longer than an MTU of 1,500 allows: compare the MTU of each link on the way"
    ]
