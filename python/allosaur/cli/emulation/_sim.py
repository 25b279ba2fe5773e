"""`allosaur sim` of emulated clients: on ports in memory, in real time, with the server that will run them.

Nobody but the clients themselves is on the ports, which are joined in pairs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format, _options, _output_file, _result
from allosaur.cli._errors import EXIT_OK, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._own_server import started
from allosaur.cli.emulation import _profile, _views

if TYPE_CHECKING:
    from allosaur import CapturedPacket, EMUProfile
    from allosaur.server import LocalServer

DEFAULT_DURATION_S = 10.0
_PACKETS_MAX = 100_000
"""So many packets are kept, unless --limit says less."""
_PORTS_MAX = 32
_RESULT = ("packets", "lost_packets", "requests", "counters")
"""What is printed as JSON."""


def run(options: argparse.Namespace) -> int:
    """Do what `allosaur sim` says, with emulated clients; return the exit code."""
    if options.multiplier != "1" or options.stateful or options.full:
        raise bad_input("-m, --stateful and --full: emulated clients have no traffic that they would change")
    output = _output_file.checked("-o", options.output) if options.output is not None else None
    duration_s = DEFAULT_DURATION_S if options.duration == _options.FOREVER else options.duration
    profile = _profile.load(Path(options.profile), options.tunable)
    outcome = simulate(profile, duration_s, output, options.limit or _PACKETS_MAX)
    if options.json:
        result = {**_result.heading("sim"), "mode": "emulation", "ok": True, "profile": str(options.profile)}
        result |= {"duration_s": duration_s, "output": options.output}
        print(json.dumps({**result, **{name: outcome[name] for name in _RESULT}}, indent=2))
        return EXIT_OK
    print(_profile.said(profile).text)
    print(_views.tables(outcome["meanings"], ""))
    more = f"; {_format.count(outcome['lost_packets'])} more" if outcome["lost_packets"] else ""
    where = f" in {options.output}" if output is not None else ""
    print(f"{_format.count(outcome['packets'])} packets{where}{more}.")
    return EXIT_OK


def simulate(profile: EMUProfile, duration_s: float, output: Path | None, packets_max: int) -> dict[str, Any]:
    """Emulate a profile for so long on a server of its own; return what came of it."""
    from allosaur.server import LocalServer

    ports = 1 + max((ns.key.vport for ns in profile.ns_list), default=0)
    if ports > _PORTS_MAX:
        raise bad_input(f"profile: a namespace is on port {ports - 1}; here are ports 0 to {_PORTS_MAX - 1}")
    count = ports + ports % 2
    with Interrupt() as interrupt, started(LocalServer(ports=["memory"] * count, emu=True)) as server:
        requests: list[dict[str, Any]] = []
        with explained("the simulation failed"), _captured(server, output, packets_max) as counted:
            counters, meanings = _emulate(server, profile, duration_s, interrupt, requests)
    return {**counted, "requests": requests, "counters": counters, "meanings": meanings}


@contextlib.contextmanager
def _captured(server: LocalServer, output: Path | None, packets_max: int) -> Iterator[dict[str, int]]:
    """Record what is sent on all ports; at the end the dictionary says how much that was."""
    from allosaur.packets._capture_writer import CaptureFile

    counted: dict[str, int] = {}
    with server.client() as client:
        ports = client.get_all_ports()
        client.acquire(ports)
        client.set_service_mode(ports)
        capture = client.start_capture(tx_ports=ports, limit=packets_max)
        offset_s = client.clock_offset_s()
        yield counted
        status = client.get_capture_status()[capture["id"]]
        packets: list[CapturedPacket] = []
        client.stop_capture(capture["id"], packets)
    counted |= {"packets": len(packets), "lost_packets": max(0, status["matched"] - len(packets))}
    if output is not None:
        with CaptureFile(output) as file:
            for packet in packets:
                file.write(packet, packet["ts"] + offset_s)


def _emulate(
    server: LocalServer,
    profile: EMUProfile,
    duration_s: float,
    interrupt: Interrupt,
    requests: list[dict[str, Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    from allosaur import EMUClient

    logger = logging.Logger("allosaur.emulation.sim", logging.DEBUG)
    logger.addHandler(_Requests(requests))
    client = EMUClient(
        server=server.host, sync_port=server.emu_port or 0, verbose_level="debug", logger=logger
    )
    with client:
        client.load_profile(profile)
        client.set_verbose("error")
        begun_s = time.monotonic()
        while not interrupt and time.monotonic() - begun_s < duration_s:
            interrupt.sleep(min(1.0, duration_s))
        return client.get_counters(), client.general_data_c.get_counters(zero=False)


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
