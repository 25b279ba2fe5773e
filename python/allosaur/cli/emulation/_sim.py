"""`allosaur sim` of emulated clients: in virtual time, by the program that will run them.

Nobody but the clients themselves is on the ports, which are joined in pairs.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format, _options, _output_file, _result, _simulated
from allosaur.cli._errors import EXIT_OK, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.emulation import _profile, _views, _virtual

if TYPE_CHECKING:
    from allosaur import EMUProfile

DEFAULT_DURATION_S = 10.0
_PACKETS_MAX = 100_000
"""So many packets are kept, unless --limit says less."""
_PORTS_MAX = 32
_STEP_S = 1.0
"""Virtual time that passes before Ctrl-C is noticed."""
_RESULT = ("packets", "lost_packets", "requests", "counters")
"""What is printed as JSON."""


def run(options: argparse.Namespace) -> int:
    """Do what `allosaur sim` says, with emulated clients; return the exit code."""
    if options.multiplier != "1" or options.stateful or options.full:
        raise bad_input("-m, --stateful and --full: emulated clients have no traffic that they would change")
    output = _output_file.checked("-o", options.output) if options.output is not None else None
    duration_s = DEFAULT_DURATION_S if options.duration == _options.FOREVER else options.duration
    profile = _profile.load(Path(options.profile), options.tunable)
    with tempfile.TemporaryDirectory() as folder:
        capture = output or (Path(folder) / "out.pcap" if options.list else None)
        outcome = simulate(profile, duration_s, capture, options.limit or _PACKETS_MAX)
        limit = options.limit or _simulated.LIMIT_PACKETS
        packets = _simulated.listed(capture, limit) if options.list and capture is not None else []
    if options.json:
        result = {**_result.heading("sim"), "mode": "emulation", "ok": True, "profile": str(options.profile)}
        result |= {"duration_s": duration_s, "output": options.output}
        result |= {"listed": packets} if options.list else {}
        print(json.dumps({**result, **{name: outcome[name] for name in _RESULT}}, indent=2))
        return EXIT_OK
    if options.list:
        print(_simulated.text(packets, outcome["packets"]) + "\n")
    print(_profile.said(profile).text)
    print(_views.tables(outcome["meanings"], ""))
    more = f"; {_format.count(outcome['lost_packets'])} more" if outcome["lost_packets"] else ""
    where = f" in {options.output}" if output is not None else ""
    print(f"{_format.count(outcome['packets'])} packets{where}{more}.")
    return EXIT_OK


def simulate(profile: EMUProfile, duration_s: float, output: Path | None, packets_max: int) -> dict[str, Any]:
    """Emulate a profile for so long in virtual time; return what came of it."""
    from allosaur import EMUClient

    ports = 1 + max((ns.key.vport for ns in profile.ns_list), default=0)
    if ports > _PORTS_MAX:
        raise bad_input(f"profile: a namespace is on port {ports - 1}; here are ports 0 to {_PORTS_MAX - 1}")
    requests: list[dict[str, Any]] = []
    logger = logging.Logger("allosaur.emulation.sim", logging.DEBUG)
    logger.addHandler(_Requests(requests))
    options = _virtual.words(ports + ports % 2, packets_max, output)
    with Interrupt() as interrupt, _virtual.VirtualServer(options) as server:
        client = EMUClient(transport=server, verbose_level="debug", logger=logger)
        with explained("the simulation failed"), client:
            client.load_profile(profile)
            client.set_verbose("error")
            counted = _run(server, duration_s, interrupt)
            counters, meanings = client.get_counters(), client.general_data_c.get_counters(zero=False)
    return {**counted, "requests": requests, "counters": counters, "meanings": meanings}


def _run(server: _virtual.VirtualServer, duration_s: float, interrupt: Interrupt) -> dict[str, int]:
    """Let virtual time pass, in steps between which Ctrl-C is noticed; return what was sent."""
    counted = server.run_until(0.0)
    steps = math.ceil(duration_s / _STEP_S)
    for step in range(1, steps + 1):
        if interrupt:
            break
        counted = server.run_until(min(step * _STEP_S, duration_s))
    return counted


class _Requests(logging.Handler):
    """Keeps the requests that a client logs, without the handle of its session."""

    def __init__(self, kept: list[dict[str, Any]]) -> None:
        super().__init__()
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message if it is a request."""
        kind, _, text = record.getMessage().partition(": ")
        if kind != "request":
            return
        asked = json.loads(text)
        for one in asked if isinstance(asked, list) else [asked]:
            params = {name: value for name, value in one.get("params", {}).items() if name != "api_h"}
            self._kept.append({"method": one["method"], "params": params})
