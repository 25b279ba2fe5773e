"""`trex-console`: our console by the command line of TRex's, with its prompt and its exit codes.

TRex's console ends with 0 whatever its commands did, and goes on after a file of commands; so does this one.
But where a line of the file failed, or none was done, it ends with the code of that: a script must know.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from allosaur._files import no_file
from allosaur.cli import _standard_streams
from allosaur.cli._errors import EXIT_INTERRUPTED, EXIT_OK, CommandError
from allosaur.cli._options import EMULATION_PORT, ServerAddress
from allosaur.cli.console import _loop
from allosaur.cli.console._session import Settings, Target, opened


@_standard_streams.unread_is_no_error
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code. `arguments` are those of the process unless given."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        if options.batch:
            return error.exit_code
    return EXIT_OK


def _run(options: argparse.Namespace) -> int:
    settings = Settings(
        ports=options.acquire,
        force=options.force,
        readonly=options.readonly,
        quiet=options.quiet,
        verbose=options.verbose,
        emulation=_emulation(options),
        only_emulation=options.emu_only_server is not None,
        is_trex=True,
    )
    target = Target(options.server, options.port, options.pub, options.user, options.timeout)
    with opened(target, settings) as session:
        if not settings.only_emulation:
            _loop.introduce(session)
        if options.batch and (code := _loop.batch(options.batch, session)) != EXIT_OK:
            return code
        if options.tui or options.xtui:
            _loop.line("tui -x" if options.xtui else "tui", session)
        if not session.is_over:
            _loop.interactive(session)
    return EXIT_OK


def _emulation(options: argparse.Namespace) -> ServerAddress | None:
    host = options.emu_only_server or (options.emu_server or options.server if options.emu else None)
    return None if host is None else ServerAddress(host, options.emu_server_port)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trex-console",
        description="A console with TRex's commands; `allosaur console` has more options.",
    )
    add = parser.add_argument
    add("-s", "--server", default="localhost", help="the server (localhost)")
    add("-p", "--port", type=int, default=4501, help="its port for requests (4501)")
    add("--async_port", dest="pub", type=int, default=4500, metavar="PORT", help="its port for events (4500)")
    add("-u", "--user", help="who asks (the user of this process)")
    add("-v", "--verbose", action="store_true", help="print each request and each reply")
    add("--timeout", type=int, metavar="S", help="wait so long for an answer (3)")
    owned = parser.add_mutually_exclusive_group()
    owned.add_argument("-a", "--acquire", nargs="+", type=int, metavar="PORT", help="own these ports (all)")
    owned.add_argument("-r", "--readonly", action="store_true", help="own no ports, only look")
    add("-f", "--force", action="store_true", help="take the ports from whoever has them")
    add("--batch", type=_file, metavar="FILE", help="do the lines of this file first")
    add("-t", "--tui", action="store_true", help="show the dashboard first")
    add("-x", "--xtui", action="store_true", help="show the dashboard in an xterm")
    add("--top", action="store_true", help="nothing: there is no window")
    add("-q", "--quiet", action="store_true", help="print errors only")
    add("--emu", action="store_true", help="emulated clients, too: commands emu_*")
    add("--emu-server", metavar="HOST", help="with --emu: their server (that of -s)")
    add("--emu-server-port", type=int, default=EMULATION_PORT, metavar="PORT", help="and its port (4510)")
    text = "emulated clients of this server, and no traffic"
    add("--emu-only-server", nargs="?", const="localhost", metavar="HOST", help=text)
    return parser


def _file(text: str) -> str:
    if why := no_file(text, may_be_pipe=True):
        raise argparse.ArgumentTypeError(f"'{text}': {why}")
    return text
