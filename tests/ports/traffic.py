"""Traffic for tests with devices in the way: packets, runs, and what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from allosaur import STLClient, STLFlowLatencyStats, STLFlowStats, STLPktBuilder, STLStream, STLTXSingleBurst
from scapy.all import IP, TCP, UDP, Ether, IPv6

SETTLE_S = 10.0
#: Readings in which nothing came: a thread of a busy machine may stand still for a while.
STILL = 5


def udp(size: int = 60, to: str = "10.0.1.2", source: str = "10.0.0.2", sport: int = 1025, **ip: Any) -> Any:
    """A UDP packet of so many bytes without FCS; IPv4 or IPv6 as its addresses are."""
    network = (IPv6 if ":" in to else IP)(src=source, dst=to, **ip)
    packet = Ether() / network / UDP(sport=sport, dport=12)
    return packet / bytes(size - len(packet))


def tcp(size: int = 60, to: str = "10.0.1.2", source: str = "10.0.0.2", flags: str = "S") -> Any:
    """A TCP packet of so many bytes without FCS."""
    packet = Ether() / IP(src=source, dst=to) / TCP(sport=1025, dport=80, flags=flags)
    return packet / bytes(size - len(packet))


def counted(pg_id: int, packet: Any, packets: int, pps: float, vm: Any = None, **options: Any) -> STLStream:
    """A burst whose packets are counted in a group."""
    return STLStream(
        packet=STLPktBuilder(pkt=packet, vm=vm),
        mode=STLTXSingleBurst(total_pkts=packets, pps=pps),
        flow_stats=STLFlowStats(pg_id),
        **options,
    )


def measured(pg_id: int, packet: Any, packets: int, pps: float = 1000, vm: Any = None) -> STLStream:
    """A burst whose latency is measured."""
    return STLStream(
        packet=STLPktBuilder(pkt=packet, vm=vm),
        mode=STLTXSingleBurst(total_pkts=packets, pps=pps),
        flow_stats=STLFlowLatencyStats(pg_id),
    )


def run(client: STLClient, streams: Mapping[int, Sequence[STLStream]]) -> Any:
    """Send the streams of each port to their end. Gives the statistics when nothing moves any more."""
    ports = list(streams)
    client.remove_all_streams(ports=ports)
    for port, list_of_streams in streams.items():
        client.add_streams(list(list_of_streams), ports=[port])
    client.clear_stats()
    client.start(ports=ports)
    client.wait_on_traffic(ports=ports)
    return settled(client)


def settled(client: STLClient) -> Any:
    """The statistics when all that was sent has arrived, or nothing has come for a while."""
    until = time.monotonic() + SETTLE_S
    stats: Any = client.get_stats()
    still = 0
    while still < STILL and time.monotonic() < until:
        time.sleep(0.15)
        before, stats = stats["total"]["ipackets"], client.get_stats()
        total = stats["total"]
        if total["ipackets"] == before and before >= total["opackets"]:
            break
        still = still + 1 if total["ipackets"] == before else 0
    return stats


def counts(stats: Any, pg_id: int, sender: int = 0, receiver: int = 1) -> tuple[int, int]:
    """Packets of a group that were sent, and that were received, whichever kind of group it is."""
    flow = stats["flow_stats"][pg_id]
    return flow["tx_pkts"][sender], flow["rx_pkts"][receiver]


def errors(stats: Any, pg_id: int) -> dict[str, int]:
    """What the measuring of a group found wrong with its packets, without what is 0."""
    found = stats["latency"][pg_id]["err_cntrs"]
    return {name: count for name, count in found.items() if count}


def captured(
    client: STLClient, port: int, bpf_filter: str, send: Callable[[], object], packets: int
) -> list[Any]:
    """What a port in service mode receives after ``send``, as Scapy packets, until so many came."""
    capture = client.start_capture(rx_ports=[port], limit=10_000, bpf_filter=bpf_filter)["id"]
    try:
        send()
        seen: list[dict[str, Any]] = []
        until = time.monotonic() + SETTLE_S
        while len(seen) < packets and time.monotonic() < until:
            more: list[dict[str, Any]] = []
            client.fetch_capture_packets(capture, more)
            seen += more
            time.sleep(0.02)
    finally:
        client.stop_capture(capture)
    assert len(seen) >= packets, f"{len(seen)} of {packets} packets came within {SETTLE_S} s"
    return [Ether(packet["binary"]) for packet in seen]
