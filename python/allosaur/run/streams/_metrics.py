"""What thresholds of a run of streams may be about: metrics of ports and streams, and how to read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from allosaur.run._metrics import (
    BPS,
    COUNT,
    EACH,
    LATENCY,
    MISSED,
    PERCENTILE,
    PPS,
    SHARE,
    TELLS_NOT,
    Document,
    Labels,
    Metric,
    Row,
    Rows,
    latency,
    with_count,
)
from allosaur.run._thresholds import Thresholds, refuse_unknown, unmeasured
from allosaur.run.streams._counts import Plan, pair_of
from allosaur.run.streams._groups import Grouping

if TYPE_CHECKING:
    from allosaur import STLClient, STLStream

_DIRECTION, _OTHER = "direction", "other"
_PORT, _STREAM = "port", "stream"


def _rows(source: str) -> Rows:
    """Return what finds rows: `directions` or `ports`, and with the label of a stream `streams`."""

    def rows(document: Document, labels: Labels) -> Iterator[tuple[str, Row]]:
        found: Sequence[Row]
        if _STREAM in labels or source != "ports":
            found = document["streams" if _STREAM in labels else source]
        else:
            found = [{"port": int(port), **row} for port, row in document["ports"].items()]
        port, stream = labels.get(_PORT, EACH), labels.get(_STREAM, EACH)
        for row in found:
            has_port = port == EACH or str(row["port"]) == port
            if has_port and (stream == EACH or stream in row["names"]):
                where = f"port {row['port']}"
                yield f"stream {', '.join(row['names'])}, {where}" if "names" in row else where, row

    return rows


_DIRECTIONS, _PORTS, _STREAMS = map(_rows, ("directions", "ports", "streams"))


def _measured(document: Document, labels: Labels) -> Iterator[tuple[str, Row]]:
    """Return the latency of each stream that is measured: the worst of them counts.

    Of a measured stream of which nothing arrived there is no time, but its packets are counted.
    """
    for name, row in _STREAMS(document, labels):
        if row["latency"] is not None or row["out_of_order_packets"] is not None:
            yield name, row["latency"] or {}


def _offered(row: Row) -> float | None:
    missed = row["missed_packets"]
    return None if missed is None else float(row["tx_packets"]) + float(missed)


def _lost_known(row: Row) -> float | None:
    """Return what was sent by who knows what of it was lost."""
    if row["lost_packets"] is None:
        return None
    return float(row["sent_packets"] if "sent_packets" in row else row["tx_packets"])


_LOST = "packets that were sent and not received, of those sent"
_MISSED = "packets that were not sent in time, of those offered"
_TWICE = "packets that were received more often than they were sent"
_LATE = "packets that arrived after later ones, of streams whose latency is measured"
_OTHERS = "packets of others that were received beside"
_OFFERED = "packets offered a second: sent, lost at the port, and missed"
_SENT_BITS = "bits sent a second, of layer 2 with FCS"
_RECEIVED_BITS = "bits received a second, of layer 2 with FCS"
_BOTH = (_PORT, _STREAM)
_OF_DIRECTIONS = (_DIRECTIONS, _BOTH, _DIRECTION)
_LOSS = Metric("loss", SHARE, _LOST, "lost_packets", *_OF_DIRECTIONS, "loss", _lost_known)
_LATE_LOAD = Metric("missed", SHARE, _MISSED, "missed_packets", _PORTS, _BOTH, MISSED, "missed", _offered)
_SUMS: tuple[Metric, ...] = (
    *with_count("packets", _LOSS),
    *with_count("packets", _LATE_LOAD),
    Metric("duplicates.packets", COUNT, _TWICE, "duplicate_packets", *_OF_DIRECTIONS, "duplicates"),
    Metric("out_of_order.packets", COUNT, _LATE, "out_of_order_packets", _STREAMS, _BOTH, LATENCY),
    Metric("other.packets", COUNT, _OTHERS, "other_packets", _PORTS, (_PORT,), _OTHER),
    Metric("tx.packets", COUNT, "packets sent", "tx_packets", _PORTS, _BOTH),
    Metric("rx.packets", COUNT, "packets received", "rx_packets", _PORTS, _BOTH),
    Metric("offered.pps", PPS, _OFFERED, "offered_packets", _PORTS, (_PORT,), per_second=True),
    Metric("tx.pps", PPS, "packets sent a second", "tx_packets", _PORTS, _BOTH, per_second=True),
    Metric("rx.pps", PPS, "packets received a second", "rx_packets", _PORTS, _BOTH, per_second=True),
    Metric("tx.bps", BPS, _SENT_BITS, "tx_bytes", _PORTS, _BOTH, times=8, per_second=True),
    Metric("rx.bps", BPS, _RECEIVED_BITS, "rx_bytes", _PORTS, _BOTH, times=8, per_second=True),
)
METRICS: tuple[Metric, ...] = (
    *(replace(one, is_summed=True) for one in _SUMS),
    *latency("a packet", "the packets", _measured, _BOTH),
)
"""All metrics of streams."""


def refuse_unmeasured(
    thresholds: Thresholds,
    client: STLClient,
    plan: Plan,
    streams: Mapping[int, Sequence[STLStream]],
    grouping: Grouping,
) -> None:
    """Raise :class:`CommandError` for a threshold of what this run will not know, before it starts."""
    is_ours = "get_status" in client.get_server_supported_cmds()
    measured = {
        (port, stream.get_pg_id())
        for port, of_port in streams.items()
        for stream in of_port
        if stream.get_flow_stats_type() == "latency"
    }
    for one in thresholds:
        needs = one.metric.needs
        ports = plan.ports if _STREAM in one.labels or needs == _DIRECTION else plan.watched
        refuse_unknown(one, _PORT, map(str, ports))
        port, stream = (one.labels.get(label, EACH) for label in _BOTH)
        rows = [row for row in grouping.rows if port in (EACH, str(row.port))]
        if _STREAM in one.labels or needs in (LATENCY, PERCENTILE):
            refuse_unknown(one, _STREAM, (name for row in rows for name in row.names))
        named = [row for row in rows if stream == EACH or stream in row.names]
        is_timed = any((row.port, row.pg_id) in measured for row in named)
        if needs in (LATENCY, PERCENTILE) and not is_timed:
            why = (
                "the profile does not measure latency there; give a stream "
                "flow_stats=STLFlowLatencyStats(pg_id=...)"
            )
        elif needs in (PERCENTILE, MISSED) and not is_ours:
            why = TELLS_NOT
        elif needs == _OTHER and grouping.ungrouped:
            why = "packets of others are not told from those of this run, counted by ports"
        elif needs == _DIRECTION:
            why = _no_receiver([one for one in plan.ports if port in (EACH, str(one))], client, grouping)
        else:
            continue
        if why:
            raise unmeasured(one, why)


def _no_receiver(senders: Sequence[int], client: STLClient, grouping: Grouping) -> str:
    """Return why nobody can receive what these ports send; empty where somebody can."""
    count = client.get_port_count()
    if any(pair_of(one) < count or (one not in grouping.ungrouped and count > 1) for one in senders):
        return ""
    return f"no port receives what port {senders[0]} sends, so nobody knows of losses"
