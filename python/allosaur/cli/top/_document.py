"""A snapshot as one object of JSON; `--json` prints one in each line."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from allosaur.cli import _registry
from allosaur.cli._modes import MODES
from allosaur.cli.top._snapshot import Port, Snapshot

_OF_SCREEN = ("attributes", "driver_counters")


def document(snapshot: Snapshot, since_s: float) -> dict[str, Any]:
    """Return the object; of the events those that happened after `since_s`."""
    flows = None
    if snapshot.flows is not None:
        flows = {
            "client": dict(snapshot.flows.client),
            "server": dict(snapshot.flows.server),
            "errors": dict(snapshot.flows.errors),
            "outcomes": {
                label: {"client": values[0], "server": values[1]}
                for label, values in snapshot.flows.outcomes.items()
            },
        }
    return {
        "command": "top",
        "ok": True,
        "time": stamp(snapshot.clock_s),
        "server": {
            **dataclasses.asdict(snapshot.server),
            "modes": [MODES.get(mode, mode) for mode in snapshot.server.modes],
        },
        "global": dict(snapshot.totals),
        "ports": {str(port.number): _port(port) for port in snapshot.ports},
        "flow_stats": {str(one.number): {**_plain(one), "lost": one.lost} for one in snapshot.groups},
        "latency": {one.name: _plain(one) for one in snapshot.latency},
        "flows": flows,
        "emulation": None
        if snapshot.metrics is None
        else {"clients": snapshot.emulated, "metrics": _registry.objects(snapshot.metrics)},
        "cpu": [_plain(core) for core in snapshot.cores],
        "runs": [_plain(run) for run in snapshot.runs],
        "events": [_plain(note) for note in snapshot.notes if note.at_s > since_s],
    }


def failure(address: str, reason: str, exit_code: int) -> dict[str, Any]:
    """Return the object of a moment at which the server did not answer."""
    return {
        "command": "top",
        "ok": False,
        "time": stamp(time.time()),
        "server": {"address": address},
        "error": reason,
        "exit_code": exit_code,
    }


def stamp(clock_s: float) -> str:
    """Return a time of day, with its zone."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(clock_s))


def _port(port: Port) -> dict[str, Any]:
    shown = {name: value for name, value in _plain(port).items() if name not in _OF_SCREEN}
    return {**shown, "mode": MODES.get(port.mode, port.mode), "counters": dict(port.counters)}


def _plain(value: Any) -> dict[str, Any]:
    return dataclasses.asdict(value)
