"""`emu-sim`: our simulation of emulated clients by the command line of TRex's.

TRex's writes a capture unless it is told where, and so does this one; `-j` has requests and counters.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from allosaur.cli import _main, _shipped, _standard_streams
from allosaur.cli._errors import EXIT_OK, EXIT_USAGE
from allosaur.cli._profile_kind import is_emulation


@_standard_streams.unread_is_no_error
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code. `arguments` are those of the process unless given."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = parser().parse_args(words)
    except SystemExit as stop:  # --help ends this way
        return stop.code if isinstance(stop.code, int) else EXIT_OK
    if not is_emulation(Path(_shipped.located(options.file))):
        print(f"error: -f {options.file}: is no profile of emulated clients", file=sys.stderr)
        return EXIT_USAGE
    command = ["sim", options.file, "-o", options.output, "-d", options.duration]
    return _main.main([*command, *([f"--json={options.json}"] if options.json else [])])


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = argparse.ArgumentParser(
        prog="emu-sim",
        description="TRex's simulation of emulated clients, by its options; `allosaur sim` has more.",
    )
    add = made.add_argument
    add("-f", "--file", default="arp_hosts", help="the profile: a .py file, or a name of `allosaur profiles`")
    add("-o", "--output", default="emu_out.pcap", help="the capture to write (%(default)s)")
    add("-d", "--duration", default="10", help="how long, in seconds (%(default)s)")
    add("-j", "--json", metavar="JSON", help="a file for the requests and the counters")
    add("-v", "--verbose", action="store_true", help="nothing: counters are always shown")
    return made
