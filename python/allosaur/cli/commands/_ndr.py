"""`allosaur ndr`: the highest rate that a device carries without loss, or with little."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments, _options
from allosaur.cli._command import Command
from allosaur.cli.commands._run import metric_names


class Ndr(Command):
    """`allosaur ndr`."""

    name = "ndr"
    summary = "find the highest rate that a device carries without loss (NDR), and with little (PDR)"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.profile(parser)
        _search(parser.add_argument_group("the search"))
        trials = parser.add_argument_group("the trials")
        _trials(trials)
        _traffic(trials)
        _where(parser)
        _rfc2544(parser.add_argument_group("further tests of RFC 2544 (streams)"))
        _arguments.flows(parser.add_argument_group("flows (stateful profiles)"), has_latency=False)
        _results(parser.add_argument_group("results"))
        _arguments.json_output(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Search, and say what was found."""
        _arguments.check_local(options)
        from allosaur.cli.ndr._command import run

        return run(options)


def _search(group: argparse._ArgumentGroup) -> None:
    """Which loads, and how precise."""
    group.add_argument(
        "--search",
        choices=("mlr", "binary", "guided"),
        default="mlr",
        help="mlr: Multiple Loss Ratio search (RFC 9971); binary: as RFC 2544; guided: binary, beginning "
        "near what came through at full load (default: mlr)",
    )
    group.add_argument(
        "--loss",
        type=_shares,
        default="0,0.5%",
        metavar="SHARE,...",
        help="the loss that is allowed: 0 is NDR, more is PDR (default: 0,0.5%%)",
    )
    group.add_argument(
        "--max",
        type=_options.multiplier,
        metavar="RATE",
        help="the highest load of a port: 5mpps, 1gbps, 40%%; of flows a factor of their rates, which has no "
        "default (default: 100%%)",
    )
    group.add_argument(
        "--min",
        type=_options.multiplier,
        metavar="RATE",
        help="the lowest load (default: a few packets a trial)",
    )
    group.add_argument(
        "--precision",
        type=_options.share,
        default=0.005,
        metavar="SHARE",
        help="how far the load that passes and the one that fails may be apart (default: 0.5%%)",
    )
    group.add_argument(
        "--max-trials", type=_options.whole_number, metavar="N", help="give up after so many trials of a case"
    )
    group.add_argument(
        "--points",
        type=_shares,
        default=[],
        metavar="SHARE,...",
        help="afterwards, measure at these shares of the limit without loss, such as 10%%,50%%,90%%",
    )


def _trials(group: argparse._ArgumentGroup) -> None:
    """How long trials last, and how many decide."""
    group.add_argument(
        "-d",
        "--duration",
        type=_options.seconds,
        default=10.0,
        metavar="TIME",
        help="how long the trials last that decide; RFC 2544 wants 60 or more (default: 10)",
    )
    group.add_argument(
        "--first-trial",
        type=_options.seconds,
        default=1.0,
        metavar="TIME",
        help="mlr: how long the first trials last (default: 1)",
    )
    group.add_argument(
        "--sum",
        type=_options.seconds,
        metavar="TIME",
        help="mlr: how many seconds of trials decide about a load (default: one trial's)",
    )
    group.add_argument(
        "--exceed",
        type=_options.share,
        default=0.0,
        metavar="SHARE",
        help="mlr: the part of these seconds in which trials may fail all the same (default: 0)",
    )
    group.add_argument(
        "--warm-up", type=_options.seconds, default=0.0, metavar="TIME", help="send so long before, uncounted"
    )
    group.add_argument(
        "--pause",
        type=_options.seconds,
        default=0.0,
        metavar="TIME",
        help="wait so long before each trial; RFC 2544 wants 5 seconds or more (default: 0)",
    )


def _traffic(group: argparse._ArgumentGroup) -> None:
    """What a trial sends, and when it passes."""
    from allosaur.cli.ndr._cases import frame_sizes

    group.add_argument(
        "--sizes",
        type=frame_sizes,
        metavar="BYTES,...",
        help="frame sizes with FCS, for the profile's tunable `size`, each searched by itself; also imix, "
        "and rfc2544 or rfc5180 for their lists",
    )
    group.add_argument(
        "-l",
        "--latency",
        type=_options.whole_number,
        metavar="PPS",
        help="time so many packets a second beside the load: of streams, packets like the profile's first; "
        "of flows, echo requests",
    )
    group.add_argument(
        "--both", action="store_true", help="send both ways: the ports, and those they are wired to"
    )
    limits = group.add_argument(
        "--fail-if",
        nargs="+",
        action="extend",
        default=[],
        metavar="METRIC>VALUE",
        help="a trial fails also when it comes to that: 'latency.p99>100us', 'out_of_order.packets>0'; "
        "@FILE has one in each line",
    )
    limits.completer = metric_names  # type: ignore[attr-defined]
    group.add_argument(
        "--missed",
        type=_options.share,
        default=0.0,
        metavar="SHARE",
        help="the part of a load that may not be sent in time; above it, that counts as lost (default: 0)",
    )
    _arguments.tunables(group)
    group.add_argument(
        "--port-counters",
        action="store_true",
        help="send packets as the profile has them, and count ports, where packets of others count too",
    )


def _rfc2544(group: argparse._ArgumentGroup) -> None:
    """What is measured after the search."""
    from allosaur.cli.ndr._cases import tests

    group.add_argument(
        "--tests",
        type=tests,
        default=[],
        metavar="NAME,...",
        help="frame-loss, back-to-back (RFC 9004), recovery, reset; for latency see --points and -l",
    )
    group.add_argument(
        "--repeat",
        type=_options.whole_number,
        default=1,
        metavar="N",
        help="back-to-back: how often, for the average; RFC 2544 wants 50 (default: 1)",
    )
    group.add_argument(
        "--reset-command", metavar="COMMAND", help="reset: the shell command that resets the device"
    )
    group.add_argument(
        "--reset-within",
        type=_options.seconds,
        default=60.0,
        metavar="TIME",
        help="reset: how long to send (default: 60)",
    )


def _where(parser: argparse.ArgumentParser) -> None:
    """The server and its ports."""
    _arguments.ports(parser, "that send streams (default: 0), or pairs for flows (default: all free ones)")
    _arguments.server_or_local(parser, "search", "send")


def _results(group: argparse._ArgumentGroup) -> None:
    """Where the results go."""
    group.add_argument("--out", metavar="FILE", help="write the result as JSON, beside what is printed")
    group.add_argument(
        "--plugin",
        metavar="FILE",
        help="a plug-in of TRex's ndr: asked before and after each trial of the search",
    )
    group.add_argument(
        "--plugin-tunable",
        type=_options.tunables,
        action="append",
        default=[],
        metavar="KEY=VALUE,...",
        help="a value for the plug-in; may be given more than once",
    )
    group.add_argument("--csv", metavar="FILE", help="write limits and trials as a table")
    group.add_argument("--report", metavar="FILE", help="write an HTML report with plots")


def _shares(text: str) -> list[float]:
    """Read shares such as `0,0.5%`."""
    return list(dict.fromkeys(_options.share(word) for word in text.split(",")))
