"""`astf-sim`: our simulator by the command line of TRex's, so that scripts go on working.

What its options ask for is handed to `allosaur sim --stateful`; what has no meaning here is named in a
warning.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from allosaur.cli import _main, _options, _profile, _standard_streams
from allosaur.cli._errors import EXIT_OK, CommandError, bad_input
from allosaur.run.flows._access import load_file

_FAULTS = {
    "NONE": [],
    "RST_SYN": ["--fault", "syn-refused"],
    "RST_SYN1": ["--fault", "syn-blind-reset"],
    "WRONG_PORT": ["--fault", "wrong-port"],
    "RST_MIDDLE": ["--fault", "reset-client"],
    "RST_MIDDLE2": ["--fault", "reset-server"],
    "RST_MIDDLE_KEEPALIVE": ["--fault", "silence"],
    "DROP": ["--loss", "10%"],
    "REORDER": ["--reorder", "10%"],
    "REORDER_DROP": ["--reorder", "10%", "--loss", "10%"],
    "PAD": ["--fault", "pad"],
}
"""TRex's simulations of what goes wrong, as ours."""
_IGNORED = {
    "--pcap": "captures are always pcap files",
    "-r": "there is one binary",
    "--dev": "there is one binary",
    "--stat": "counters are always shown",
    "-v": "there is nothing more to say",
    "-e": "there is no such view",
    "-x": "no memory checker is run",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise bad_input(f"{message} (see astf-sim --help)")


@_standard_streams.unread_is_no_error
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code. `arguments` are those of the process unless given."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            options = _parser().parse_args(_joined(words))
        except SystemExit as stop:  # --help ends this way
            return stop.code if isinstance(stop.code, int) else EXIT_OK
        if options.json:
            return _print_profile(options)
        ours = _words(options)
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    for name, reason in _IGNORED.items():
        if getattr(options, name.strip("-")):
            print(f"warning: {name}: {reason}", file=sys.stderr)
    return _main.main(["sim", "--stateful", *ours])


def _joined(words: Sequence[str]) -> list[str]:
    """Join `-c` to its argument, which looks like an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "-c":
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="astf-sim",
        description="TRex's simulator of stateful profiles, by its options; `allosaur sim` has more.",
    )
    add = parser.add_argument
    add("-f", dest="file", required=True, metavar="FILE", help="the profile: a .py or .json file")
    add("-o", dest="output", metavar="OUT.pcap", help="writes OUT_c.pcap and OUT_s.pcap, one of each side")
    add("--full", action="store_true", help="all flows at their rates, instead of one of each template")
    add("-d", dest="duration", metavar="SECONDS", help="with --full: how long (5)")
    add("-c", dest="cmd", default="", metavar="WORDS", help="--rtt=USEC and --shaper-rate=KBPS of the link")
    add("-s", "--sim-mode", dest="mode", default="NONE", metavar="MODE", help=", ".join(_FAULTS))
    add("-t", dest="tunables", metavar="TUNABLES", help="values for the profile, key=value with commas")
    add("--json", action="store_true", help="prints the profile in the words of the protocol, and ends")
    for name, reason in _IGNORED.items():
        add(name, dest=name.strip("-"), action="store_true", help=f"nothing: {reason}")
    add("-p", dest="path", metavar="DIR", help="nothing: the binary is found by itself")
    for name in ("-g", "--cc"):
        add(name, dest="refused", metavar="FILE", help="not here")
    return parser


def _words(options: argparse.Namespace) -> list[str]:
    """Return the words for `allosaur sim`."""
    if options.refused is not None:
        raise bad_input("--cc and -g: are not here; a profile says all of a simulation")
    words = [options.file]
    words += ["-o", options.output] if options.output else []
    if options.full:
        words += ["--full", *(["-d", options.duration] if options.duration else [])]
    words += ["-t", options.tunables] if options.tunables else []
    return words + _link(options.cmd) + _fault(options.mode)


def _fault(mode: str) -> list[str]:
    name = mode.upper().removeprefix("CSSIM_")
    if name not in _FAULTS:
        raise bad_input(f"-s {mode}: there are {', '.join(_FAULTS)}")
    return _FAULTS[name]


def _link(text: str) -> list[str]:
    """Read the words of `-c`: the time in microseconds, the rate in kilobits per second."""
    words = []
    for word in text.replace(",", " ").split():
        name, _, value = word.partition("=")
        if name not in ("--rtt", "--shaper-rate"):
            raise bad_input(f"-c {word}: there are --rtt=USEC and --shaper-rate=KBPS")
        if not value.isdecimal():
            raise bad_input(f"-c {word}: write a whole number behind {name}=")
        words += ["--rtt", f"{int(value) / 1e6:.6f}"] if name == "--rtt" else ["--rate", f"{value}kbps"]
    return words


def _print_profile(options: argparse.Namespace) -> int:
    tunables = [_options.tunables(options.tunables)] if options.tunables else []
    print(load_file(Path(options.file), _profile.merged(tunables)).to_json_str())
    return EXIT_OK
