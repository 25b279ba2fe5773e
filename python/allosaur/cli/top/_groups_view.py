"""The views of streams and of latency."""

from __future__ import annotations

from dataclasses import dataclass

from allosaur.cli.top import _numbers
from allosaur.cli.top._snapshot import PERCENTILES, Group, Latency, Snapshot
from allosaur.cli.top._state import State
from allosaur.cli.top._table import Body, Cell, Column, Look, said, table

_BAR = "█"
_LATENCY_TIMES = (
    *(("avg", "average", 0), ("p50", "p50", 0), ("p90", "p90", 1), ("p99", "p99", 0), ("p99.9", "p99_9", 1)),
    *(("max", "max", 0), ("last max", "last_max", 2), ("min", "min", 3), ("jitter", "jitter", 0)),
)
_NO_GROUPS = "No packet group is counted: streams need flow_stats=STLFlowStats(pg_id=...)."
_NO_LATENCY = (
    "No latency is measured: streams need flow_stats=STLFlowLatencyStats(...), flows `start -l PPS` "
    "or `allosaur run -l PPS`."
)


def streams(state: State, snapshot: Snapshot, width: int) -> Body:
    """Return the packet groups."""
    if not snapshot.groups:
        return Body("Streams, by packet group", rows=said(_NO_GROUPS))
    head, *rows = table(_group_columns(state), snapshot.groups, width)
    return Body("Streams, by packet group (tx-rx: lost, or on their way)", [head], rows)


def _group_columns(state: State) -> list[Column[Group]]:
    def bars(what: str, width: int) -> Column[Group]:
        title = f"{what.removesuffix('_pps')} pps, last {width} readings"
        return Column(
            title[:width],
            width,
            lambda one: _numbers.bars(state.history.series(f"g{one.number}", what), width),
            rank=4,
        )

    return [
        Column("pg id", 10, lambda one: str(one.number)),
        Column("tx pps", 7, lambda one: _numbers.rate(one.tx_pps)),
        Column("tx bps", 7, lambda one: _numbers.rate(one.tx_bps)),
        Column("rx pps", 7, lambda one: _numbers.rate(one.rx_pps)),
        Column("rx bps", 7, lambda one: _numbers.rate(one.rx_bps)),
        Column("tx pkts", 10, lambda one: _numbers.count(one.tx_pkts)),
        Column("rx pkts", 10, lambda one: _numbers.count(one.rx_pkts)),
        Column("tx-rx", 7, _difference),
        Column("%", 7, lambda one: _numbers.loss(one.lost, one.tx_pkts)),
        Column("missed", 7, lambda one: _numbers.problems(one.missed), rank=2),
        Column("tx bytes", 10, lambda one: _numbers.count(one.tx_bytes), rank=3),
        Column("rx bytes", 10, lambda one: _numbers.count(one.rx_bytes), rank=3),
        bars("tx_pps", 24),
        bars("rx_pps", 24),
    ]


def _difference(group: Group) -> Cell:
    """What is under way is no loss: nobody has waited a second for it."""
    cell = _numbers.problems(group.lost)
    return cell if not 0 < group.lost < group.tx_pps else Cell(cell.text)


def latency(state: State, snapshot: Snapshot, width: int) -> Body:
    """Return what latency streams and echo requests measured."""
    if not snapshot.latency:
        return Body("Latency (usec)", rows=said(_NO_LATENCY))
    if state.is_histogram:
        return _histogram(snapshot.latency[min(state.chosen, len(snapshot.latency) - 1)], width)
    return latency_table(snapshot, width)


def latency_table(snapshot: Snapshot, width: int) -> Body:
    """Return the table of it, whatever else could be shown."""
    head, *rows = table(_LATENCY_COLUMNS, snapshot.latency, width)
    return Body("Latency (usec)", [head], rows)


def _time(title: str, name: str, rank: int) -> Column[Latency]:
    width = max(len(title), 6)
    return Column(title, width, lambda one: _numbers.usec(one.times_usec.get(name)), rank=rank)


_LATENCY_COLUMNS: tuple[Column[Latency], ...] = (
    Column("of", 13, lambda one: one.name, is_text=True),
    Column("rx pkts", 9, lambda one: _numbers.count(one.received, 9)),
    *(_time(*one) for one in _LATENCY_TIMES),
    Column("errors", 6, lambda one: _numbers.problems(_errors(one))),
    Column("tx pkts", 10, lambda one: _numbers.count(one.sent), rank=3),
    Column("dropped", 7, lambda one: _numbers.problems(one.errors.get("dropped", 0)), rank=4),
    Column("out of order", 12, lambda one: _numbers.problems(one.errors.get("out_of_order", 0)), rank=4),
    Column("dup", 7, lambda one: _numbers.problems(one.errors.get("dup", 0)), rank=4),
)


def _errors(one: Latency) -> int:
    """Numbers out of sequence, as in TRex's table, and impossible times; of echo requests, all errors."""
    of_streams = ("seq_too_low", "seq_too_high")
    if of_streams[0] in one.errors:
        return sum(one.errors[name] for name in of_streams) + one.errors.get("impossible_times", 0)
    return sum(one.errors.values())


@dataclass(frozen=True)
class _Bucket:
    least_usec: int
    packets: int
    until: int
    """Packets of this bucket and all below."""


def _histogram(one: Latency, width: int) -> Body:
    total = sum(one.histogram.values())
    most = max(one.histogram.values(), default=0)
    buckets: list[_Bucket] = []
    for least, packets in sorted(one.histogram.items()):
        buckets.append(_Bucket(least, packets, packets + (buckets[-1].until if buckets else 0)))
    room = width - 42
    columns: list[Column[_Bucket]] = [
        Column("from usec", 9, lambda bucket: _numbers.count(bucket.least_usec, 9)),
        Column("packets", 10, lambda bucket: _numbers.count(bucket.packets)),
        Column("%", 6, lambda bucket: f"{100 * bucket.packets / total:.2f}"),
        Column("sum %", 7, lambda bucket: f"{100 * bucket.until / total:.2f}"),
        Column(
            "", room, lambda bucket: Cell(_BAR * -(-room * bucket.packets // most), Look.BARS), is_text=True
        ),
    ]
    shown = ", ".join(
        f"{title} {_numbers.usec(one.times_usec.get(name))}"
        for name, title in PERCENTILES.items()
        if one.times_usec.get(name) is not None
    )
    errors = ", ".join(f"{name} {number}" for name, number in sorted(one.errors.items()) if number)
    summary = [
        (
            Cell(f"{one.name}  {shown}"),
            Cell(f"  {errors}" if errors else "  no errors", Look.BAD if errors else Look.DIM),
        )
    ]
    head, *rows = table(columns, buckets, width)
    return Body("Latency histogram", [*summary, head], rows, "left, right: another")
