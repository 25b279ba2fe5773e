"""What each port sent and what of it was received: each direction by itself, nothing taken from another.

Packets that have a packet group are known wherever they arrive. Of the others only the ports' counters tell,
in which packets of other programs count, too; for these, a port's packets are expected at the other end of
its wire.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from allosaur.report import Direction, PortCounters, StreamCounters
from allosaur.run.streams._groups import Grouping


def pair_of(port: int) -> int:
    """Return the port at the other end of the wire: 0 and 1, 2 and 3, and so on."""
    return port ^ 1


def directions(
    grouping: Grouping,
    sending: Sequence[int],
    counters: Mapping[int, PortCounters],
    streams: Sequence[StreamCounters],
) -> list[Direction]:
    """Return what became of the packets of each port that sends."""
    return [
        _direction(port, uncounted(grouping, port, streams), counters, streams)
        for port in sorted(set(sending))
        if port in counters
    ]


def other_packets(
    grouping: Grouping, counters: Mapping[int, PortCounters], streams: Sequence[StreamCounters]
) -> dict[int, int | None]:
    """Return what each port received beside the run's own packets; `None` where nobody can tell."""
    senders = {row.port for row in grouping.rows} | set(grouping.ungrouped)
    unclear = {pair_of(port) for port in senders if uncounted(grouping, port, streams)}
    # The ports were read before the groups: while packets arrive, the groups may know of more of them.
    return {
        port: None if port in unclear or not senders else max(one.rx_packets - _own(streams, port), 0)
        for port, one in counters.items()
    }


def uncounted(grouping: Grouping, port: int, streams: Sequence[StreamCounters]) -> list[str]:
    """Return the streams of a port of which no packet group tells: all, if nobody says which there are."""
    counted = {one.pg_id for one in streams if one.port == port}
    rows = [row for row in grouping.rows if row.port == port]
    found = [*grouping.ungrouped.get(port, ())]
    found += [name for row in rows if row.pg_id not in counted for name in row.names]
    return found if found or rows else ["all packets"]


def _direction(
    port: int,
    ungrouped: Sequence[str],
    counters: Mapping[int, PortCounters],
    streams: Sequence[StreamCounters],
) -> Direction:
    of_port = [one for one in streams if one.port == port]
    received: Counter[int] = Counter()
    for one in of_port:
        received.update(one.rx_by_port)
    sent = sum(one.tx_packets for one in of_port)
    lost: int | None = sum(one.lost_packets for one in of_port)
    surplus = 0
    peer = pair_of(port)
    if ungrouped:
        # Everything that the port sent belongs to the run but what groups know already.
        rest = counters[port].written_packets - sent
        sent += rest
        if peer in counters:
            arrived = max(counters[peer].rx_packets - _own(streams, peer), 0)
            received[peer] += arrived
            lost, surplus = (lost or 0) + max(rest - arrived, 0), max(arrived - rest, 0)
    if peer not in counters and not received.total():
        lost = None
    return Direction(
        port=port,
        sent_packets=sent,
        received_packets=received.total(),
        received_by_port={port: count for port, count in sorted(received.items()) if count},
        lost_packets=lost,
        duplicate_packets=sum(one.duplicate_packets for one in of_port),
        ungrouped=ungrouped,
        surplus_packets=surplus,
    )


def _own(streams: Sequence[StreamCounters], port: int) -> int:
    """Return how many packets of known streams arrived at a port."""
    return sum(one.rx_by_port.get(port, 0) for one in streams)
