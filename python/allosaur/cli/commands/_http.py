"""`allosaur http`: a URL under load, and what came of it: `allosaur run` with a profile of its own."""

from __future__ import annotations

import argparse
import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from allosaur.cli import _arguments, _options, _shipped
from allosaur.cli._command import Command
from allosaur.cli._errors import bad_input
from allosaur.cli.commands._run import metric_names, run_profiles

_PROFILE = "http_load"
_OURS = "http://48.0.0.1/"
"""What is asked for where both ends are ours."""
_TUNABLES = {
    "rate": "rate",
    "requests_per_connection": "requests",
    "sources": "clients",
    "method": "method",
    "header": "headers",
    "body": "body",
    "size": "size",
    "status": "status",
    "timeout": "timeout",
    "tls": "version",
    "host": "host",
    "resume": "resume",
}
"""Which tunable of the profile each option is."""
_HEADER = re.compile(r"[^\s:]+:.*")


class Http(Command):
    """`allosaur http`."""

    name = "http"
    summary = "load a web server with real HTTP or HTTPS requests and judge each response"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "url",
            metavar="URL",
            nargs="?",
            type=url,
            help=f"what to ask for, by the address of the server: https://10.0.0.2/index.html; with --local "
            f"of a server of ours (default: {_OURS})",
        )
        parser.add_argument(
            "--rate",
            type=_rate,
            default=10.0,
            metavar="N",
            help="requests a second, whether the server keeps up or not (default: 10)",
        )
        parser.add_argument(
            "--requests-per-connection",
            type=_options.whole_number,
            metavar="N",
            help="how many a connection sends, one after another (default: 1, a new connection each)",
        )
        parser.add_argument(
            "--sources",
            type=network,
            metavar="NETWORK",
            help="the addresses of clients (default: 16.0.0.0/24)",
        )
        _request(parser)
        parser.add_argument("--tls", choices=("1.2", "1.3"), help="the only version of TLS (default: both)")
        parser.add_argument(
            "--resume",
            type=_options.share,
            metavar="SHARE",
            help="the share of TLS sessions that are resumed, 0 to 1",
        )
        arguments_of_run(parser, "10", "pairs for flows (default: all free ones)")

    def run(self, options: argparse.Namespace) -> int:
        """Run the profile of a URL."""
        if options.url is None and not options.local:
            raise bad_input("URL is missing: give what to ask for, or --local for a server of ours")
        given = {"url": options.url or _OURS}
        for option, tunable in _TUNABLES.items():
            value = getattr(options, option)
            if value is not None and value != []:
                given[tunable] = value
        return run_shipped(options, _PROFILE, given)


def arguments_of_run(parser: argparse.ArgumentParser, duration: str, ports: str) -> None:
    """Add what commands with a profile of their own take as `allosaur run` does."""
    _arguments.duration(parser, duration)
    _arguments.ports(parser, ports)
    _arguments.server_or_local(parser, "run", "start")
    _arguments.results(parser, metric_names)
    _arguments.flows(parser.add_argument_group("flows"))
    _arguments.json_output(parser)
    parser.set_defaults(multiplier="1", port_counters=False, emu_port=None)


def run_shipped(options: argparse.Namespace, profile: str, tunables: dict[str, Any]) -> int:
    """Run a shipped profile with these tunables. Returns the exit code."""
    options.profiles = [_shipped.located(profile)]
    options.tunable = [tunables]
    return run_profiles(options)


def _request(parser: argparse.ArgumentParser) -> None:
    """Add what a request is, and what its response must be."""
    parser.add_argument("--method", metavar="NAME", help="such as POST (default: GET)")
    parser.add_argument("--host", metavar="NAME", help="the name in Host and SNI (default: the address)")
    parser.add_argument(
        "--header",
        action="append",
        type=_header,
        default=[],
        metavar="NAME: VALUE",
        help="one more header line",
    )
    parser.add_argument("--body", metavar="TEXT", help="the body of requests")
    parser.add_argument(
        "--size", type=_options.whole_number, metavar="N", help="repeat the body until it has N bytes"
    )
    parser.add_argument(
        "--status",
        type=_options.whole_number,
        metavar="N",
        help="the status that is a success (default: 200 to 399)",
    )
    parser.add_argument(
        "--timeout",
        type=_options.seconds,
        metavar="TIME",
        help="how long a response may take (default: as long as the connection holds)",
    )


def url(text: str) -> str:
    """Check a URL. Raises `ArgumentTypeError`."""
    try:
        parts = urlsplit(text)
        address = ipaddress.ip_address(parts.hostname or "")
        port = parts.port
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} needs an IPv4 address for a host: https://10.0.0.2/ (its name is for --host)"
        ) from None
    if parts.scheme not in ("http", "https") or address.version != 4 or port == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no URL of http or https with an IPv4 address")
    return text


def network(text: str) -> str:
    """Check a network of clients. Raises `ArgumentTypeError`."""
    try:
        return str(ipaddress.IPv4Network(text, strict=False))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no network of IPv4, such as 10.1.0.0/16") from None


def _header(text: str) -> str:
    if not _HEADER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no header line: write NAME: VALUE")
    return text


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of requests a second")
    return value
