"""`ndr`: our search for limits by the command line of TRex's, so that scripts go on working.

What its options ask for is handed to `allosaur ndr`; what has no meaning here is named in a warning.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from allosaur.cli import _main, _standard_streams
from allosaur.cli._errors import EXIT_OK, CommandError, bad_input

_IGNORED = {
    "first_run_duration": "each search begins at the highest load, with trials as long as the others",
    "title": "the result has the name of the profile",
    "force_map_table": "ports are not mapped: packets are known wherever they arrive",
    "opt_binary_search_percentage": "the guided search begins 5 % around what came through",
}
_TOLERANCES = ((50, "p50"), (10, "p90"), (1, "p99"), (0, "max"))
"""From which share of packets beyond the highest latency on which percentile must be below it."""
_RESULTS_MAX = 10


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise bad_input(f"{message} (see ndr --help)")


@_standard_streams.unread_is_no_error
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code. `arguments` are those of the process unless given."""
    try:
        try:
            options = _parser().parse_args(arguments)
        except SystemExit as stop:  # --help ends this way
            return stop.code if isinstance(stop.code, int) else EXIT_OK
        if options.yaml is not None:
            _take(options, _read_yaml(Path(options.yaml)))
        ours = words(options)
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    for name, reason in _IGNORED.items():
        if getattr(options, name):
            print(f"warning: {name}: {reason}", file=sys.stderr)
    return _main.main(["ndr", *ours])


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="ndr", description="TRex's search for NDR, by its options; `allosaur ndr` has more."
    )
    add = parser.add_argument
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--stl", action="store_true", help="streams, which is the default")
    kind.add_argument("--astf", action="store_true", help="flows: the load is a multiplier")
    add("-s", "--server", default="127.0.0.1", metavar="HOST", help="the server (this machine's)")
    add("--ports", dest="ports", type=int, nargs="*", default=[0, 1], metavar="N", help="pairs of ports: 0 1")
    add("--bi-dir", dest="bi_dir", action="store_true", help="send both ways")
    add("-p", "--pdr", dest="pdr", type=float, default=0.1, metavar="PERCENT", help="allowed loss (0.1)")
    errors = ("-e", "--pdr-error", "--allowed-error")
    add(*errors, dest="pdr_error", type=float, default=1.0, metavar="PERCENT", help="precision (1)")
    add(
        "-t",
        "--iter-time",
        dest="iteration_duration",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="(20)",
    )
    add(
        "-x", "--max-iterations", dest="max_iterations", type=int, default=10, metavar="N", help="trials (10)"
    )
    add(
        "-q",
        "--q-full",
        dest="q_full_resolution",
        type=float,
        default=2.0,
        metavar="PERCENT",
        help="missed (2)",
    )
    add("--max-latency", dest="max_latency", type=int, default=0, metavar="USEC", help="0: any")
    add("--lat-tolerance", dest="lat_tolerance", type=int, default=0, metavar="PERCENT", help="above it (0)")
    add(
        "-lpps", "--latency-pps", dest="latency_pps", type=int, default=0, metavar="PPS", help="timed packets"
    )
    add(
        "-n",
        "--ndr-results",
        dest="ndr_results",
        type=int,
        default=1,
        metavar="N",
        help="also parts of it (1)",
    )
    add("-o", "--output", dest="output", metavar="FILE", help="the result as JSON")
    add("--yaml", dest="yaml", metavar="FILE", help="values for all of these, by TRex's names")
    add("-f", "--plugin-file", dest="plugin_file", metavar="FILE", help="a plug-in")
    add("--tunables", dest="tunables", metavar="A=1,B=2", help="values for the plug-in")
    add(
        "--opt-bin-search", dest="opt_binary_search", action="store_true", help="begin near what came through"
    )
    add("--profile", dest="profile", metavar="PROFILE", help="(imix; with --astf udp_exchange)")
    add("--prof-tun", dest="profile_tunables", metavar="A=1,B=2", help="values for the profile")
    add("--high-mult", dest="high_mult", type=float, default=100.0, metavar="FACTOR", help="--astf: (100)")
    add("--low-mult", dest="low_mult", type=float, default=1.0, metavar="FACTOR", help="--astf: (1)")
    add("-v", "--verbose", dest="verbose", action="store_true", help="nothing: progress is always shown")
    add("-ft", "--first_run_duration_time", dest="first_run_duration", type=float, help="nothing")
    add("-ti", "--title", dest="title", help="nothing")
    add("--force-map", dest="force_map_table", action="store_true", help="nothing")
    add("--opt-bin-search-percent", dest="opt_binary_search_percentage", type=int, help="nothing")
    return parser


def words(options: argparse.Namespace) -> list[str]:
    """Return the words for `allosaur ndr`."""
    profile = options.profile or ("udp_exchange" if options.astf else "imix")
    found = [
        profile,
        "--server",
        options.server,
        "--search",
        "guided" if options.opt_binary_search else "binary",
    ]
    found += ["-d", f"{options.iteration_duration:g}s", "--precision", f"{options.pdr_error:g}%"]
    found += ["--max-trials", str(options.max_iterations), "--missed", f"{options.q_full_resolution:g}%"]
    if options.astf:
        # TRex's stops at the first error, and its ports are all.
        found += ["--loss", "0", "--max", f"{options.high_mult:g}", "--min", f"{options.low_mult:g}"]
    else:
        found += ["--loss", f"{options.pdr:g}%", "--ports", _ports(options)]
    found += ["-l", str(options.latency_pps)] if options.latency_pps else []
    if options.max_latency:
        which = next(name for least, name in _TOLERANCES if options.lat_tolerance >= least)
        found += ["--fail-if", f"latency.{which}>{options.max_latency}us"]
    if not 1 <= options.ndr_results <= _RESULTS_MAX:
        raise bad_input(f"-n {options.ndr_results}: there may be 1 to {_RESULTS_MAX} results")
    if options.ndr_results > 1:
        parts = range(options.ndr_results, 0, -1)
        found += ["--points", ",".join(f"{part / options.ndr_results:.9f}" for part in parts)]
    found += ["--out", options.output] if options.output else []
    found += ["--plugin", options.plugin_file] if options.plugin_file else []
    found += ["--plugin-tunable", _text(options.tunables)] if options.tunables else []
    found += ["-t", _text(options.profile_tunables)] if options.profile_tunables else []
    return found


def _ports(options: argparse.Namespace) -> str:
    """Return the ports that send. Each pair must be wired as all pairs are here."""
    pairs = list(zip(options.ports[::2], options.ports[1::2], strict=False))
    if not pairs or len(options.ports) % 2 or any(one ^ 1 != other for one, other in pairs):
        raise bad_input("--ports: write pairs of ports that are wired to each other, such as 0 1 2 3")
    return ",".join(str(port) for pair in pairs for port in (pair if options.bi_dir else pair[:1]))


def _text(tunables: str | Mapping[str, Any]) -> str:
    """Return tunables as words have them; a YAML file has them as a mapping."""
    if isinstance(tunables, str):
        return tunables
    return ",".join(f"{name}={value}" for name, value in tunables.items())


def _read_yaml(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise bad_input(f"--yaml {path}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise bad_input(f"--yaml {path}: not YAML: {error}") from error
    if not isinstance(values, dict):
        raise bad_input(f"--yaml {path}: write names and values, such as `pdr: 0.1`")
    return values


def _take(options: argparse.Namespace, values: Mapping[str, Any]) -> None:
    """Take the values of a file, which go before those of the command line."""
    for name, value in values.items():
        if name not in vars(options):
            raise bad_input(f"--yaml: there is no value '{name}'; there are {', '.join(vars(options))}")
        setattr(options, name, value)
