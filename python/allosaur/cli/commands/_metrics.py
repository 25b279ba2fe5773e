"""`allosaur metrics`: what a server shows by HTTP, sent to collectors that do not ask for it."""

from __future__ import annotations

import argparse

from allosaur.cli import _options
from allosaur.cli._command import Command
from allosaur.cli._errors import bad_input

_INTERVAL_MIN_S = 0.1


class Metrics(Command):
    """`allosaur metrics`."""

    name = "metrics"
    summary = "send a server's metrics to an OpenTelemetry collector"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        push = actions.add_parser(
            "push",
            help="read /metrics and post it, by OTLP over HTTP",
            description="Read /metrics of a server (`allosaur server --http 4502`) and post it to a "
            "collector, by OTLP over HTTP, until Ctrl-C.",
        )
        push.add_argument(
            "--otlp",
            required=True,
            metavar="URL",
            help="the collector, such as http://127.0.0.1:4318; /v1/metrics is added where there is no path",
        )
        push.add_argument(
            "--from",
            dest="source",
            default="4502",
            metavar="ADDRESS",
            help="where the server answers HTTP: a port, HOST:PORT, or a URL (default: 4502)",
        )
        push.add_argument(
            "-i",
            "--interval",
            type=_options.seconds,
            default="10",
            metavar="TIME",
            help="how often, such as 500ms or 60 (default: 10)",
        )
        push.add_argument("--once", action="store_true", help="send once, and end")

    def run(self, options: argparse.Namespace) -> int:
        """Send until a signal, or once."""
        from allosaur.cli.metrics import _push

        if options.interval < _INTERVAL_MIN_S:
            raise bad_input(f"--interval {options.interval:g}: the server counts no faster than 100ms")
        source, collector = _push.source_url(options.source), _push.collector_url(options.otlp)
        exporter = _push.Exporter(source, collector, _push.headers())
        return _push.run(exporter, None if options.once else options.interval)
