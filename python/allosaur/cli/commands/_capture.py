"""`allosaur capture`: what ports send and receive, into a file or line by line."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from allosaur.cli import _arguments, _format, _options, _result, _simulated
from allosaur.cli._access import check_ports, names, remote_client, service_ports
from allosaur.cli._command import Command
from allosaur.cli._errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    CommandError,
    bad_input,
    brief,
    explained,
)
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._live import PLAIN_INTERVAL_S
from allosaur.cli._options import FOREVER

if TYPE_CHECKING:
    from allosaur import CapturedPacket, STLClient
    from allosaur.packets._capture_writer import CaptureFile

_BUFFER_PACKETS = 10_000
"""What the server keeps until it is fetched."""
_FIXED_PACKETS_MAX = 100_000
"""With -n: so many packets the server keeps for it. Of more some may be missing when they come too fast."""
_FETCH_PACKETS = 1_000
_INTERVAL_S = 0.02
_STDOUT = "-"
_LISTED_PACKETS_MAX = 10_000
"""With --json and without a file: so many packets are in the result."""


@dataclass
class _Recording:
    """What came until now."""

    options: argparse.Namespace
    file: CaptureFile | None
    start_s: float = 0.0
    clock_offset_s: float = 0.0
    """What the server's clock must be added to be the time of day."""
    packets: int = 0
    bytes: int = 0
    lost: int = 0
    last_index: int = 0
    """The number of the last packet among all that matched."""
    listed: list[dict[str, Any]] = field(default_factory=list)

    def take(self, packets: Sequence[CapturedPacket]) -> None:
        """Write packets, or show them."""
        if packets and not self.packets:
            # A port records as soon as it can, which may be before the answer that says when it began.
            self.start_s = min(self.start_s, *(packet["ts"] for packet in packets))
        for packet in packets:
            self.packets += 1
            self.bytes += packet["wirelen"]
            self.last_index = packet["index"]
            if self.file is not None:
                self.file.write(packet, packet["ts"] + self.clock_offset_s)
            else:
                self._show(packet)
        if packets and self.file is not None:
            self.file.flush()
        elif packets:
            sys.stdout.flush()

    def room(self) -> int:
        """How many packets may still come."""
        return _FETCH_PACKETS if self.options.limit is None else self.options.limit - self.packets

    def _show(self, packet: CapturedPacket) -> None:
        line: dict[str, Any] = {
            "time_s": round(packet["ts"] - self.start_s, 9),
            "port": packet["port"],
            "origin": packet["origin"],
            "length": packet["wirelen"],
            "summary": _simulated.summary(packet["binary"]),
        }
        if not self.options.json:
            print("{time_s:.6f} port {port} {origin} {length} bytes: {summary}".format(**line))
        elif len(self.listed) < _LISTED_PACKETS_MAX:
            self.listed.append(line)


class Capture(Command):
    """`allosaur capture`."""

    name = "capture"
    summary = "record what ports send and receive, or show it"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--rx",
            type=_options.port_list,
            metavar="N,...",
            help="ports whose received packets to record (default: all ports, unless --tx is given)",
        )
        parser.add_argument(
            "--tx", type=_options.port_list, metavar="N,...", help="ports whose sent packets to record"
        )
        parser.add_argument(
            "-o",
            "--output",
            metavar="FILE",
            help="write the packets to this file, pcapng if it ends in .pcapng, else pcap; - is the standard "
            "output (default: print a line for each)",
        )
        parser.add_argument(
            "-f", "--filter", default="", metavar="BPF", help="which packets, as for tcpdump (default: all)"
        )
        parser.add_argument(
            "-n",
            "--limit",
            type=_options.whole_number,
            metavar="N",
            help="end after so many packets (default: when stopped)",
        )
        parser.add_argument(
            "-d",
            "--duration",
            type=_options.duration_s,
            default=_options.FOREVER,
            metavar="TIME",
            help="end after this time (default: when stopped by Ctrl-C)",
        )
        parser.add_argument(
            "--snaplen",
            type=_options.whole_number,
            metavar="BYTES",
            help="bytes of each packet to keep (default: all)",
        )
        _arguments.server(parser, _arguments.FORCE_PORTS)

    def run(self, options: argparse.Namespace) -> int:
        from allosaur import STLError
        from allosaur.packets._capture_writer import CaptureFile

        if options.output == _STDOUT and options.json:
            raise bad_input("-o -: the standard output cannot have the packets and, with --json, the result")
        with contextlib.ExitStack() as stack:
            interrupt = stack.enter_context(Interrupt())
            client = stack.enter_context(remote_client(options))
            rx, tx = _ports(client, options)
            try:
                stream = sys.stdout.buffer if options.output == _STDOUT else None
                file = stack.enter_context(CaptureFile(options.output, stream)) if options.output else None
                if file is not None:
                    file.flush()
            except STLError as error:
                raise CommandError(str(error), EXIT_USAGE) from error
            recording = _Recording(options, file)
            capture = _start(client, options, rx, tx, stack)
            recording.start_s = capture["ts"]
            with explained("cannot ask the server for its time"):
                recording.clock_offset_s = client.clock_offset_s()
            with explained("the capture ended early"):
                _record(client, capture["id"], recording, interrupt)
        _print(recording, rx, tx)
        # Ctrl-C is how a capture usually ends.
        if interrupt.exit_code not in (None, EXIT_INTERRUPTED):
            return interrupt.exit_code or EXIT_FAILED
        return EXIT_FAILED if recording.lost else EXIT_OK


def _ports(client: STLClient, options: argparse.Namespace) -> tuple[list[int], list[int]]:
    tx = options.tx or []
    rx = options.rx if options.rx is not None else [] if tx else client.get_all_ports()
    check_ports(client, rx, "--rx")
    check_ports(client, tx, "--tx")
    return rx, tx


def _start(
    client: STLClient,
    options: argparse.Namespace,
    rx: Sequence[int],
    tx: Sequence[int],
    stack: contextlib.ExitStack,
) -> dict[str, Any]:
    """Start to record; where the server wants it, with the ports in service mode until the end."""
    from allosaur import STLError

    def start() -> dict[str, Any]:
        return client.start_capture(
            tx_ports=list(tx),
            rx_ports=list(rx),
            limit=_buffer_packets(options.limit),
            bpf_filter=options.filter,
            snaplen=options.snaplen or 0,
        )

    ports = sorted({*rx, *tx})
    without = [port for port in ports if not client.get_port(port).is_service]
    try:
        return start()
    except STLError as error:
        if not without or "service" not in str(error).lower():
            raise CommandError(
                f"cannot capture on port {names(ports)}: {brief(error)}", EXIT_USAGE
            ) from error
    stack.enter_context(service_ports(client, without, options.force))
    with explained(f"cannot capture on port {names(ports)}", EXIT_USAGE):
        return start()


def _buffer_packets(limit: int | None) -> int:
    """Return what the server shall keep: of the first `limit` packets all, as a rule."""
    return _BUFFER_PACKETS if limit is None else min(limit, _FIXED_PACKETS_MAX)


def _record(client: STLClient, capture: int, recording: _Recording, interrupt: Interrupt) -> None:
    options = recording.options
    begun_s = next_line_s = time.monotonic()
    try:
        while not interrupt and recording.room() > 0:
            elapsed_s = time.monotonic() - begun_s
            if options.duration != FOREVER and elapsed_s >= options.duration:
                break
            fetched = _fetch(client, capture, recording)
            if recording.file is not None and time.monotonic() - next_line_s > PLAIN_INTERVAL_S:
                next_line_s = time.monotonic()
                _progress(recording, elapsed_s)
            if not fetched:
                interrupt.sleep(_INTERVAL_S)
        if recording.room() > 0:
            status = client.get_capture_status()[capture]
            recording.lost = status["matched"] - status["fetched"] - status["count"]
        else:
            # What came after the packets that were asked for is nobody's loss.
            recording.lost = max(recording.last_index - recording.packets, 0)
    finally:
        rest: list[CapturedPacket] = []
        client.stop_capture(capture, rest)
        recording.take(rest[: max(0, recording.room())] if options.limit is not None else rest)


def _fetch(client: STLClient, capture: int, recording: _Recording) -> bool:
    packets: list[CapturedPacket] = []
    client.fetch_capture_packets(capture, packets, pkt_count=min(_FETCH_PACKETS, recording.room()))
    recording.take(packets)
    return bool(packets)


def _progress(recording: _Recording, elapsed_s: float) -> None:
    counted = f"{_format.count(recording.packets)} packets, {_format.count(recording.bytes)} bytes"
    print(f"{elapsed_s:.1f} s: {counted}", file=sys.stderr, flush=True)


def _print(recording: _Recording, rx: Sequence[int], tx: Sequence[int]) -> None:
    options = recording.options
    if options.json:
        result: dict[str, Any] = {
            **_result.heading("capture"),
            "ok": not recording.lost,
            "server": str(options.server),
            "rx_ports": list(rx),
            "tx_ports": list(tx),
            "filter": options.filter,
            "output": options.output,
            "packets": recording.packets,
            "bytes": recording.bytes,
            "lost_packets": recording.lost,
        }
        if recording.file is None:
            result["listed"] = recording.listed
        print(json.dumps(result, indent=2))
        return
    lost = f"; {_format.count(recording.lost)} came too fast and are missing" if recording.lost else ""
    is_file = options.output not in (None, _STDOUT)
    where = f" in {options.output}" if is_file else ""
    line = f"{_format.count(recording.packets)} packets, {_format.count(recording.bytes)} bytes{where}{lost}."
    # Where the packets are on the standard output, the total is only for people.
    print(line, file=None if is_file else sys.stderr)
