"""Tables of stateful traffic for who asks: states, all counters, single flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from allosaur.cli import _format
from allosaur.run.flows._hints import hint

NO_FLOWS = "No flow is recorded: start the profile with --record-flows 1s."
NO_LATENCY = "No latency is measured: start the profile with --latency 10."
_FLOWS_SHOWN = 20
"""More flows would only scroll away."""
_WORDS = {
    "STATE_IDLE": "empty",
    "STATE_ASTF_LOADED": "loaded",
    "STATE_ASTF_PARSE": "starting",
    "STATE_ASTF_BUILD": "starting",
    "STATE_TX": "runs",
    "STATE_ASTF_CLEANUP": "closing flows",
    "STATE_ASTF_DELETE": "being removed",
}
_FLOW_COLUMNS = (
    ("state", "state"),
    ("rtt", "rtt ms"),
    ("snd_cwnd", "window B"),
    ("snd_rexmitpack", "sent again"),
    ("rcv_ooopack", "out of order"),
)


def states(found: Mapping[str, str]) -> str:
    """Return what each profile does."""
    rows = [[name, _WORDS.get(state, state)] for name, state in found.items()]
    return _format.table(["profile", "state"], rows)


def counters(traffic: Mapping[str, Mapping[str, Any]]) -> str:
    """Return every counter of both sides that is not zero, by TRex's names."""
    names = list(dict.fromkeys([*traffic["client"], *traffic["server"]]))
    rows = []
    for name in names:
        values = [traffic[side].get(name, 0) for side in ("client", "server")]
        if not all(isinstance(value, (int, float)) for value in values) or not any(values):
            continue
        rows.append([("! " if hint(name) else "") + name, *(_number(value) for value in values)])
    return _format.table(["counter", "clients", "servers"], rows)


def flows(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the last record of each flow."""
    rows = [
        [flow, *(_number(records[-1].get(name, "-")) for name, _ in _FLOW_COLUMNS)]
        for flow, records in list(found.items())[:_FLOWS_SHOWN]
        if records
    ]
    text = _format.table(["flow", *(title for _, title in _FLOW_COLUMNS)], rows)
    more = len(found) - _FLOWS_SHOWN
    return f"{text}\nand {more:,} more flows (--json has them all)" if more > 0 else text


def _number(value: Any) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.1f}"
    return f"{int(value):,}" if isinstance(value, (int, float)) else str(value)
