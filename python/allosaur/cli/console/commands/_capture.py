"""`capture`: what ports send and receive, into files and onto the screen."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from allosaur.cli._answer import Answer
from allosaur.cli._errors import bad_input
from allosaur.cli.console import _monitor, _tables
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session

_HEADER = ("ID", "Status", "Matched", "Packets", "Bytes", "TX Ports", "RX Ports", "BPF Filter")
_MONITOR_PACKETS = 10_000


class Capture(ConsoleCommand):
    """`capture`."""

    name = "capture"
    summary = "record packets into a file, or watch them"
    group = "Console"
    example = 'capture record start --rx 1 --limit 100 -f "udp port 12"'

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION")
        _leaf(actions, "show", "list what is captured", _show)
        _leaf(actions, "clear", "end all captures", _clear)
        record = actions.add_parser("record", help="into a file").add_subparsers(
            dest="record", metavar="ACTION", required=True
        )
        start = _leaf(record, "start", "begin", _record_start)
        _what(start)
        start.add_argument("-l", "--limit", type=int, default=1000, metavar="N", help="packets (1000)")
        start.add_argument("-e", "--endpoint", default="", metavar="URL", help="the server writes them there")
        stop = _leaf(record, "stop", "end one and write its packets", _record_stop)
        stop.add_argument("-i", "--id", type=int, required=True, metavar="CAPTURE", help="which")
        stop.add_argument("-o", "--output", metavar="FILE", help="where to: pcap, or pcapng by its name")
        watch = actions.add_parser("monitor", help="onto the screen").add_subparsers(
            dest="monitor", metavar="ACTION", required=True
        )
        start = _leaf(watch, "start", "begin", _monitor_start)
        _what(start)
        kind = start.add_mutually_exclusive_group()
        kind.add_argument("-v", "--verbose", action="store_true", help="all fields of each packet")
        kind.add_argument("-p", "--pipe", action="store_true", help="into a pipe for Wireshark")
        start.add_argument("-o", "--output", metavar="FILE", help="into a pcap file")
        _leaf(watch, "stop", "end", _monitor_stop)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        act: Callable[[Session, argparse.Namespace], Answer] = getattr(options, "act", _show)
        return act(session, options)


def _leaf(actions: Any, name: str, text: str, act: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text)
    parser.set_defaults(act=act)
    return parser


def _what(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--tx", nargs="+", type=int, action="extend", default=[], metavar="PORT", help="what these send")
    add("--rx", nargs="+", type=int, action="extend", default=[], metavar="PORT", help="what these receive")
    add("-f", "--filter", nargs="+", default=[], metavar="BPF", help="which packets, as for tcpdump")
    add("-s", "--snaplen", type=int, default=0, metavar="BYTES", help="bytes of each (all)")


def _begin(session: Session, options: argparse.Namespace, limit: int, **fields: Any) -> dict[str, Any]:
    if not options.tx and not options.rx:
        raise bad_input("capture: give --tx or --rx with ports")
    text = " ".join(options.filter)
    return session.client.start_capture(
        options.tx, options.rx, limit, bpf_filter=text, snaplen=options.snaplen, **fields
    )


def _record_start(session: Session, options: argparse.Namespace) -> Answer:
    number = _begin(session, options, options.limit, endpoint=options.endpoint)["id"]
    text = (
        f"*** Capturing ID is set to '{number}' ***\n"
        f"*** Please call 'capture record stop --id {number} -o <out.pcap>' when done ***"
    )
    return Answer(text, {"id": number})


def _record_stop(session: Session, options: argparse.Namespace) -> Answer:
    captures = session.client.get_capture_status()
    if session.monitor is not None and session.monitor.capture_id == options.id:
        raise bad_input(f"-i {options.id}: that is the monitor; `capture monitor stop` ends it")
    if options.id not in captures:
        raise bad_input(f"-i {options.id}: is not captured; there are {sorted(captures) or 'none'}")
    packets = captures[options.id]["count"]
    session.client.stop_capture(options.id, options.output)
    where = f"Writing {packets} packets to '{options.output}'" if options.output else "Stopping the capture"
    return done(where, id=options.id, packets=packets, output=options.output)


def _monitor_start(session: Session, options: argparse.Namespace) -> Answer:
    if session.monitor is not None:
        session.monitor.close()
        session.monitor = None
    client = session.client
    capture = _begin(session, options, _MONITOR_PACKETS, mode="cyclic")
    words = "*** The monitor shows packets here; 'capture monitor stop' ends it ***"
    if options.pipe:
        show: _monitor.Show = _monitor.to_pipe(client.clock_offset_s())
        words = f"*** Start 'wireshark -k -i {show.path}' ***"  # type: ignore[attr-defined]
    elif options.output:
        show = _monitor.to_file(Path(options.output), client.clock_offset_s())
        words = f"*** The monitor writes to {options.output} ***"
    else:
        show = _monitor.Show(options.verbose)
    session.monitor = _monitor.Monitor(session.another_client(), capture["id"], capture["ts"], show)
    return Answer(words, {"id": capture["id"]})


def _monitor_stop(session: Session, options: argparse.Namespace) -> Answer:
    if session.monitor is None:
        return Answer("No monitor is active.", {"id": None})
    number = session.monitor.capture_id
    session.monitor.close()
    session.monitor = None
    return done("Stopping the monitor", id=number)


def _clear(session: Session, options: argparse.Namespace) -> Answer:
    if session.monitor is not None:
        _monitor_stop(session, options)
    session.client.remove_all_captures()
    return done("Removing all captures")


def _show(session: Session, options: argparse.Namespace) -> Answer:
    captures = session.client.get_capture_status()
    watched = session.monitor.capture_id if session.monitor is not None else None
    texts = []
    for title, is_monitor in (("Active Recorders", False), ("Active Monitor", True)):
        rows = [_row(one) for number, one in captures.items() if (number == watched) == is_monitor]
        texts += [_tables.titled(title, _HEADER, rows)] if rows else []
    fields = {str(number): one for number, one in captures.items()}
    return Answer("\n".join(texts) or "Nothing is captured.", {"captures": fields})


def _row(capture: dict[str, Any]) -> list[str]:
    wanted = capture["filter"]
    return [
        *(str(capture["id"]), capture["state"], str(capture["matched"])),
        *(f"[{capture['count']}/{capture['limit']}]", str(capture["bytes"])),
        *(_ports(wanted["tx"]), _ports(wanted["rx"]), wanted["bpf"] or "-"),
    ]


def _ports(bits: int) -> str:
    return ", ".join(str(port) for port in range(bits.bit_length()) if bits >> port & 1) or "-"
