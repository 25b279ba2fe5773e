"""What thresholds of a run of streams may be about: metrics of ports and streams, and how to read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from allosaur.run._metrics import (
    LATENCY,
    MISSED,
    PERCENTILE,
    TELLS_NOT,
    Row,
    Rows,
    Value,
    Values,
    latency,
    share_and_count,
)
from allosaur.run._thresholds import (
    BPS,
    COUNT,
    EACH,
    PPS,
    Document,
    Labels,
    Metric,
    Thresholds,
    Unit,
    refuse_unknown,
    unmeasured,
)
from allosaur.run.streams._counts import Plan
from allosaur.run.streams._directions import pair_of
from allosaur.run.streams._groups import Grouping

if TYPE_CHECKING:
    from allosaur import STLClient, STLStream

_DIRECTION = "direction"
_PORT, _STREAM = "port", "stream"
_BOTH = (_PORT, _STREAM)


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
                yield _name(row), row

    return rows


def _name(row: Row) -> str:
    port = f"port {row['port']}"
    return f"stream {', '.join(row['names'])}, {port}" if "names" in row else port


def _measured(document: Document, labels: Labels) -> Iterator[tuple[str, Row]]:
    """Return the latency of each stream that is measured: the worst of them counts.

    Of a measured stream of which nothing arrived there is no time, but its packets are counted.
    """
    for name, row in _rows("streams")(document, labels):
        if row["latency"] is not None or row["out_of_order_packets"] is not None:
            yield name, row["latency"] or {}


def _field(*names: str, times: float = 1) -> Value:
    """Return what reads the first of these keys that a row has."""

    def value(row: Row) -> float | None:
        found = next((row[name] for name in names if name in row), None)
        return None if found is None else times * float(found)

    return value


def _offered(row: Row) -> float | None:
    missed = row["missed_packets"]
    return None if missed is None else float(row["tx_packets"]) + float(missed)


def _lost_known(row: Row) -> float | None:
    """Return what was sent by who knows what of it was lost."""
    return None if row["lost_packets"] is None else _field("sent_packets", "tx_packets")(row)


def _sum(source: str, part: str, whole: Value | None = None) -> Values:
    return Values(_rows(source), _field(part), whole, is_summed=True)


def _count(
    name: str,
    meaning: str,
    read: Values,
    labels: Sequence[str] = _BOTH,
    needs: str = "",
    decides: str = "",
) -> Metric:
    return Metric(name, COUNT, meaning, read, labels, needs, decides)


def _rate(
    name: str, meaning: str, of: str, unit: Unit, times: float = 1, labels: Sequence[str] = _BOTH
) -> Metric:
    read = Values(_rows("ports"), _field(of, times=times), per_second=True, is_summed=True)
    return Metric(name, unit, meaning, read, labels)


_LOST = "packets that were sent and not received, of those sent"
_MISSED = "packets that were not sent in time, of those offered"
_LOST_SUM = _sum("directions", "lost_packets", _lost_known)
_MISSED_SUM = _sum("ports", "missed_packets", _offered)
_TWICE_SUM = _sum("directions", "duplicate_packets")
_TWICE = "packets that were received more often than they were sent"
_LATE = "packets that arrived after later ones, of streams whose latency is measured"
_OTHER = "packets of others that were received beside"
_OFFERED = "packets offered a second: sent, lost at the port, and missed"
METRICS: tuple[Metric, ...] = (
    *share_and_count("loss", "packets", _LOST, _LOST_SUM, _BOTH, _DIRECTION, "loss"),
    *share_and_count("missed", "packets", _MISSED, _MISSED_SUM, _BOTH, MISSED, "missed"),
    _count("duplicates.packets", _TWICE, _TWICE_SUM, _BOTH, _DIRECTION, "duplicates"),
    _count("out_of_order.packets", _LATE, _sum("streams", "out_of_order_packets"), _BOTH, LATENCY),
    _count("other.packets", _OTHER, _sum("ports", "other_packets"), (_PORT,), "other"),
    _count("tx.packets", "packets sent", _sum("ports", "tx_packets")),
    _count("rx.packets", "packets received", _sum("ports", "rx_packets")),
    _rate("offered.pps", _OFFERED, "offered_packets", PPS, labels=(_PORT,)),
    _rate("tx.pps", "packets sent a second", "tx_packets", PPS),
    _rate("rx.pps", "packets received a second", "rx_packets", PPS),
    _rate("tx.bps", "bits sent a second, of layer 2 with FCS", "tx_bytes", BPS, 8),
    _rate("rx.bps", "bits received a second, of layer 2 with FCS", "rx_bytes", BPS, 8),
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
        port = one.labels.get(_PORT, EACH)
        rows = [row for row in grouping.rows if port in (EACH, str(row.port))]
        if _STREAM in one.labels or needs in (LATENCY, PERCENTILE):
            refuse_unknown(one, _STREAM, (name for row in rows for name in row.names))
        if needs in (LATENCY, PERCENTILE):
            stream = one.labels.get(_STREAM, EACH)
            named = [row for row in rows if stream == EACH or stream in row.names]
            if not any((row.port, row.pg_id) in measured for row in named):
                raise unmeasured(
                    one,
                    "the profile does not measure latency there; give a stream "
                    "flow_stats=STLFlowLatencyStats(pg_id=...)",
                )
        if needs in (PERCENTILE, MISSED) and not is_ours:
            raise unmeasured(one, TELLS_NOT)
        if needs == "other" and grouping.ungrouped:
            raise unmeasured(one, "packets of others are not told from those of this run, counted by ports")
        if needs == _DIRECTION:
            _refuse_no_receiver(one, client, plan, grouping)


def _refuse_no_receiver(threshold: Any, client: STLClient, plan: Plan, grouping: Grouping) -> None:
    """Raise :class:`CommandError` when nobody can receive what a threshold is about."""
    port = threshold.labels.get(_PORT, EACH)
    senders = [one for one in plan.ports if port in (EACH, str(one))]
    count = client.get_port_count()
    if all(pair_of(one) >= count and (one in grouping.ungrouped or count == 1) for one in senders):
        raise unmeasured(
            threshold, f"no port receives what port {senders[0]} sends, so nobody knows of losses"
        )
