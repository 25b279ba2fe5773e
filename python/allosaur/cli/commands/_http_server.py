"""`allosaur http-server`: a web server on ports: `allosaur run` with a profile of its own."""

from __future__ import annotations

import argparse
from pathlib import Path

from allosaur.cli import _options
from allosaur.cli._command import Command
from allosaur.cli._errors import bad_input
from allosaur.cli.commands._http import arguments_of_run, run_shipped

_PROFILE = "http_server"
_PORT_MAX = 65_535


class HttpServer(Command):
    """`allosaur http-server`."""

    name = "http-server"
    summary = "serve files, sizes or answers by path over HTTP or HTTPS"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=_port, metavar="P", help="the TCP port (default: 80, with --tls 443)"
        )
        parser.add_argument(
            "--root", metavar="DIR", help="serve the files of a folder: up to 900, of 32 MiB in all"
        )
        parser.add_argument(
            "--size",
            type=_options.whole_number,
            metavar="N",
            help="answer other paths with N bytes (default: 404, or 1000 bytes without --root and --route)",
        )
        parser.add_argument(
            "--route",
            action="append",
            default=[],
            metavar="'PATH KEY=VALUE ...'",
            help="how a path is answered: status, size, chunk (bytes), delay (seconds), header (NAME:VALUE); "
            "a * at the end stands for all that follows",
        )
        parser.add_argument("--tls", action="store_true", help="HTTPS, with a certificate that is made")
        parser.add_argument("--certificate", metavar="FILE", help="the certificate for --tls, as PEM")
        parser.add_argument("--key", metavar="FILE", help="its key, as PEM")
        arguments_of_run(parser, "forever", "pairs, the second port of each serves (default: all free ones)")

    def run(self, options: argparse.Namespace) -> int:
        """Serve until the time is over or Ctrl-C."""
        if (options.certificate is None) != (options.key is None):
            raise bad_input("--certificate and --key belong together: give both or none")
        if options.certificate is not None and not options.tls:
            raise bad_input("--certificate is for --tls: give both")
        # Clients of ours look in where nobody else could.
        given: dict[str, object] = {
            "port": options.port or (443 if options.tls else 80),
            "rate": 10 if options.local else 0,
            "tls": int(options.tls),
        }
        if options.route:
            given["routes"] = options.route
        for name in ("root", "certificate", "key"):
            path = getattr(options, name)
            if path is not None:
                if not Path(path).exists():
                    raise bad_input(f"--{name}: there is no {path}")
                given[name] = str(Path(path).resolve())
        if options.size is not None:
            given["size"] = options.size
        return run_shipped(options, _PROFILE, given)


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give 1 to {_PORT_MAX}")
    return int(text)
