"""What must hold after the demo: each check compares two counts, or a count and what was asked."""

from __future__ import annotations

from collections.abc import Iterator

from allosaur.cli.demo import _profile
from allosaur.report._counters import PortCounters
from allosaur.report._model import Check
from allosaur.run.streams._counts import pair_of
from allosaur.run.streams._result import StreamResult

RATE_TOLERANCE = 0.001
"""The share by which the packets sent may differ from those asked for."""
_BURST_CLASS = "128-255"
_MIX_CLASSES = {64: "64", 594: "512-1023", 1518: "1024-1518"}


def check(outcome: StreamResult, rate_pps: float) -> list[Check]:
    """Return every check, those that hold and those that do not."""
    return list(_checks(outcome, rate_pps))


def _checks(outcome: StreamResult, rate_pps: float) -> Iterator[Check]:
    for port in outcome.plan.ports:
        sender, receiver = outcome.counters[port], outcome.counters[pair_of(port)]
        way = f"port {port} to {pair_of(port)}"
        yield _equal(f"{way}, packets received", sender.tx_packets, receiver.rx_packets)
        yield _equal(f"{way}, bytes received", sender.tx_bytes, receiver.rx_bytes)
        yield _sizes(way, sender, receiver)
        yield Check(
            f"port {port}, nothing missed", sender.missed_packets == 0, _missed(sender.missed_packets)
        )
        yield from _as_asked(port, sender, rate_pps * outcome.plan.duration_s)


def _equal(what: str, sent: int, received: int) -> Check:
    found = f"all {received:,}" if sent == received else f"{received:,} of {sent:,}"
    return Check(what, sent == received and sent > 0, found)


def _sizes(way: str, sender: PortCounters, receiver: PortCounters) -> Check:
    what = f"{way}, packets of each size"
    sent, received = sender.tx_by_size, receiver.rx_by_size
    if sent is None or received is None:
        return Check(what, False, "the server did not count sizes")
    names = sorted({*sent, *received}, key=lambda name: int(name.split("-")[0]))
    names = [name for name in names if sent.get(name, 0) or received.get(name, 0)]
    wrong = [name for name in names if sent.get(name, 0) != received.get(name, 0)]
    found = ", ".join(
        f"{name}: {received.get(name, 0):,} of {sent.get(name, 0):,}" for name in wrong or names
    )
    return Check(what, not wrong and bool(names), found)


def _missed(missed: int | None) -> str:
    return "the server did not count it" if missed is None else f"{missed:,} packets missed"


def _as_asked(port: int, sender: PortCounters, mix_packets: float) -> Iterator[Check]:
    """Compare what was sent with what the profile asked for, by size: each size stands for one part of it."""
    sizes = sender.tx_by_size or {}
    parts_total = sum(parts for _, parts in _profile.MIX)
    for size, parts in _profile.MIX:
        asked, sent = mix_packets * parts / parts_total, sizes.get(_MIX_CLASSES[size], 0)
        # One packet more or less is the end of the run, not the rate.
        ok = abs(sent - asked) <= max(1.0, asked * RATE_TOLERANCE)
        yield Check(f"port {port}, {size}-byte packets as asked", ok, f"{sent:,} sent, {asked:,.0f} asked")
    bursts = sizes.get(_BURST_CLASS, 0)
    asked_bursts = _profile.CHAIN_PACKETS
    found = f"{bursts:,} sent, {asked_bursts:,} asked"
    yield Check(f"port {port}, the burst chain ran to its end", bursts == asked_bursts, found)
