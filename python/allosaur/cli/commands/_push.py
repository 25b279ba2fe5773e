"""`allosaur push`: a capture file out of some ports, and what came of it."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments, _options
from allosaur.cli._command import Command


class Push(Command):
    """`allosaur push`."""

    name = "push"
    summary = "send a capture file, read here or by the server"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a pcap, pcapng or ERF file")
        parser.add_argument(
            "--remote",
            action="store_true",
            help="the file is on the server's machine: the server reads it while it sends, whatever its size",
        )
        parser.add_argument(
            "--ports",
            type=_options.port_list,
            default=[0],
            metavar="N,...",
            help="ports that send (default: 0)",
        )
        gaps = parser.add_mutually_exclusive_group()
        gaps.add_argument(
            "--ipg", type=_options.microseconds, metavar="US", help="send packets so many microseconds apart"
        )
        gaps.add_argument(
            "--min-ipg",
            type=_options.microseconds,
            metavar="US",
            help="keep the gaps of the file, but none shorter than so many microseconds",
        )
        parser.add_argument(
            "--speedup",
            type=_options.factor,
            default=1.0,
            metavar="F",
            help="how many times faster than the file (default: 1)",
        )
        parser.add_argument(
            "--count",
            type=_options.count,
            default=1,
            metavar="N",
            help="how often to send the file, or forever (default: 1)",
        )
        parser.add_argument(
            "-d",
            "--duration",
            type=_options.duration_s,
            default=_options.FOREVER,
            metavar="TIME",
            help="end after this time: seconds (10), or 500ms, 2m, 1h (default: when the file ends)",
        )
        parser.add_argument(
            "--dual",
            action="store_true",
            help="send both directions of the file, one from each port of a pair (0 and 1, 2 and 3)",
        )
        parser.add_argument("--src-mac-pcap", action="store_true", help="keep the source MAC addresses")
        parser.add_argument("--dst-mac-pcap", action="store_true", help="keep the destination MAC addresses")
        _arguments.server(parser, _arguments.FORCE_PORTS)

    def run(self, options: argparse.Namespace) -> int:
        """Send the file."""
        from allosaur.cli.streams._push import run

        return run(options)
