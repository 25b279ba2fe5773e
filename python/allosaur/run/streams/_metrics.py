"""What thresholds of a run of streams may be about: metrics of ports and streams, and how to read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allosaur.run._thresholds import (
    BPS,
    COUNT,
    EACH,
    PPS,
    SHARE,
    TIME,
    Document,
    Labels,
    Metric,
    Reading,
    Thresholds,
    refuse_unknown,
    unmeasured,
)
from allosaur.run.streams._counts import Plan
from allosaur.run.streams._directions import pair_of
from allosaur.run.streams._groups import Grouping

if TYPE_CHECKING:
    from allosaur import STLClient, STLStream

Row = Mapping[str, Any]
Value = Callable[[Row], float | None]
_LATENCY, _PERCENTILE, _MISSED, _DIRECTION = "latency", "percentile", "missed", "direction"
_PORT, _STREAM = "port", "stream"
_BOTH = (_PORT, _STREAM)


@dataclass(frozen=True)
class _Sums:
    """A metric that adds up over rows of the document, or is the share of one sum of another."""

    of_port: str
    """Where its rows are in the document without the label of a stream: `directions` or `ports`."""
    part: Value
    whole: Value | None = None
    per_second: bool = False

    def __call__(self, document: Document, labels: Labels) -> list[Reading]:
        """Read it."""
        source = "streams" if _STREAM in labels else self.of_port
        rows = list(_rows(document, source, labels))
        if EACH in labels.values():
            return [Reading(self._value(document, [row]), _name(row)) for row in rows]
        where = ", ".join(f"{name} {value}" for name, value in labels.items())
        return [Reading(self._value(document, rows), where)]

    def _value(self, document: Document, rows: Sequence[Row]) -> float | None:
        part = _sum(self.part, rows)
        if part is None:
            return None
        if self.per_second:
            return part / document["duration_s"] if document["duration_s"] else None
        if self.whole is None:
            return part
        whole = _sum(self.whole, rows)
        return 100 * part / whole if whole else None


def _rows(document: Document, source: str, labels: Labels) -> Iterator[Row]:
    """Return the rows that have the labels."""
    if source == "ports":
        found: Sequence[Row] = [{"port": int(port), **row} for port, row in document["ports"].items()]
    else:
        found = document[source]
    port, stream = labels.get(_PORT, EACH), labels.get(_STREAM, EACH)
    for row in found:
        has_port = port == EACH or str(row["port"]) == port
        if has_port and (stream == EACH or stream in row["names"]):
            yield row


def _sum(value: Value, rows: Sequence[Row]) -> float | None:
    """Return the sum over the rows that know; `None` when none does."""
    known = [one for row in rows if (one := value(row)) is not None]
    return math.fsum(known) if known else None


def _name(row: Row) -> str:
    port = f"port {row['port']}"
    return f"stream {', '.join(row['names'])}, {port}" if "names" in row else port


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


def _measured(key: str) -> Callable[[Document, Labels], list[Reading]]:
    """Return what reads the latency of each stream that is measured: the worst of them counts."""

    def read(document: Document, labels: Labels) -> list[Reading]:
        # Of a measured stream of which nothing arrived there is no time, but its packets are counted.
        rows = [
            row
            for row in _rows(document, "streams", labels)
            if row["latency"] is not None or row["out_of_order_packets"] is not None
        ]
        return [Reading((row["latency"] or {}).get(key), _name(row)) for row in rows]

    return read


def _rate(name: str, meaning: str, of: str, unit: Any, times: float = 1) -> Metric:
    return Metric(name, unit, meaning, _Sums("ports", _field(of, times=times), per_second=True), _BOTH)


_LOST = _field("lost_packets")
METRICS: tuple[Metric, ...] = (
    Metric(
        "loss",
        SHARE,
        "packets that were sent and not received, of those sent",
        _Sums("directions", _LOST, _lost_known),
        _BOTH,
        _DIRECTION,
        "loss",
    ),
    Metric("loss.packets", COUNT, "the same, counted", _Sums("directions", _LOST), _BOTH, _DIRECTION, "loss"),
    Metric(
        "missed",
        SHARE,
        "packets that were not sent in time, of those offered",
        _Sums("ports", _field("missed_packets"), _offered),
        _BOTH,
        _MISSED,
        "missed",
    ),
    Metric(
        "missed.packets",
        COUNT,
        "the same, counted",
        _Sums("ports", _field("missed_packets")),
        _BOTH,
        _MISSED,
        "missed",
    ),
    Metric(
        "duplicates.packets",
        COUNT,
        "packets that were received more often than they were sent",
        _Sums("directions", _field("duplicate_packets")),
        _BOTH,
        _DIRECTION,
        "duplicates",
    ),
    Metric(
        "out_of_order.packets",
        COUNT,
        "packets that arrived after later ones, of streams whose latency is measured",
        _Sums("streams", _field("out_of_order_packets")),
        _BOTH,
        _LATENCY,
    ),
    Metric(
        "other.packets",
        COUNT,
        "packets of others that were received beside",
        _Sums("ports", _field("other_packets")),
        (_PORT,),
        "other",
    ),
    Metric("tx.packets", COUNT, "packets sent", _Sums("ports", _field("tx_packets")), _BOTH),
    Metric("rx.packets", COUNT, "packets received", _Sums("ports", _field("rx_packets")), _BOTH),
    Metric(
        "offered.pps",
        PPS,
        "packets offered a second: sent, lost at the port, and missed",
        _Sums("ports", _field("offered_packets"), per_second=True),
        (_PORT,),
    ),
    _rate("tx.pps", "packets sent a second", "tx_packets", PPS),
    _rate("rx.pps", "packets received a second", "rx_packets", PPS),
    _rate("tx.bps", "bits sent a second, of layer 2 with FCS", "tx_bytes", BPS, 8),
    _rate("rx.bps", "bits received a second, of layer 2 with FCS", "rx_bytes", BPS, 8),
    *(
        Metric(f"latency.{name}", TIME, meaning, _measured(f"{key}_us"), _BOTH, needs)
        for name, key, meaning, needs in (
            ("min", "min", "shortest time of a packet", _LATENCY),
            ("average", "average", "average time", _LATENCY),
            ("p50", "p50", "time that half of the packets kept to", _PERCENTILE),
            ("p90", "p90", "time that 90 % of the packets kept to", _PERCENTILE),
            ("p99", "p99", "time that 99 % of the packets kept to", _PERCENTILE),
            ("p99.9", "p99_9", "time that 99.9 % of the packets kept to", _PERCENTILE),
            ("max", "max", "longest time of a packet", _LATENCY),
            ("jitter", "jitter", "jitter", _LATENCY),
        )
    ),
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
        if _STREAM in one.labels or needs in (_LATENCY, _PERCENTILE):
            refuse_unknown(one, _STREAM, (name for row in rows for name in row.names))
        if needs in (_LATENCY, _PERCENTILE):
            stream = one.labels.get(_STREAM, EACH)
            named = [row for row in rows if stream == EACH or stream in row.names]
            if not any((row.port, row.pg_id) in measured for row in named):
                raise unmeasured(
                    one,
                    "the profile does not measure latency there; give a stream "
                    "flow_stats=STLFlowLatencyStats(pg_id=...)",
                )
        if needs in (_PERCENTILE, _MISSED) and not is_ours:
            raise unmeasured(one, "a server of TRex's does not tell it")
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
