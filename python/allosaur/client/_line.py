"""Runs that are told in one line, as on TRex's console: ``start_line("-f imix.py -m 10mpps --port 0 1")``."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NoReturn

from .._errors import STLArgumentError
from ..streams._multiplier import parse_duration
from ._connection import Connection
from ._places import PortProfileID
from ._traffic import CORE_MASK_PIN, Traffic


class ConsoleLine:
    """Commands of TRex's console."""

    def __init__(self, connection: Connection, traffic: Traffic) -> None:
        self._connection = connection
        self._traffic = traffic

    def start_line(self, line: str) -> bool:
        """Load a profile and start it, by the options of the console's ``start``.

        ``-f`` FILE is the profile, ``-t`` its tunables (key=value with commas, or words to the end of
        the line), ``-m`` the multiplier, ``-d`` the duration, ``-p`` the ports (default: all that are
        ours), "0.name" for a profile of a port. ``--total``, ``--force``, ``--core_mask``, ``--pin`` and
        ``--sync`` are as the arguments of ``start``. What the ports had before is removed. Raises
        ``STLError``.
        """
        options = _parser().parse_args(shlex.split(line))
        chosen = [PortProfileID(one) for one in options.ports or self._connection.acquired_ports()]
        if options.force:
            self._traffic.stop(ports=chosen)
        self._traffic.remove_all_streams(ports=chosen)
        tunables = _tunables(options.tunables)
        for one in chosen:
            self._traffic.add_profile(options.file, ports=[one], **tunables)
        self._traffic.start(
            ports=chosen,
            mult=options.mult,
            force=options.force,
            duration=parse_duration(options.duration),
            total=options.total,
            core_mask=CORE_MASK_PIN if options.pin else options.core_mask,
            synchronized=options.sync,
        )
        return True


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise STLArgumentError("line", message, "-f FILE and the options of start_line()")


def _parser() -> _Parser:
    parser = _Parser(prog="start_line", add_help=False, allow_abbrev=False)
    parser.add_argument("-f", dest="file", required=True)
    parser.add_argument("-m", dest="mult", default="1")
    parser.add_argument("-d", dest="duration", default="-1")
    parser.add_argument("-p", "--port", "--ports", dest="ports", nargs="+")
    parser.add_argument("--total", action="store_true")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--pin", action="store_true")
    parser.add_argument("--core_mask", nargs="+", type=lambda text: int(text, 0))
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("-t", dest="tunables", nargs=argparse.REMAINDER, default=[])
    return parser


def _tunables(words: list[str]) -> dict[str, Any]:
    """Tunables in the old style (key=value with commas) or the new (words of a command line)."""
    if words and "=" in words[0] and not words[0].startswith("-"):
        pairs = [pair.partition("=") for pair in words[0].split(",")]
        words = [word for name, _, value in pairs for word in (f"--{name}", value)] + words[1:]
    return {"tunables": words} if words else {}
