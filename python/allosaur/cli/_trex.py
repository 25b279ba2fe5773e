"""`t-rex-64`: starts our server by the command line of TRex's launcher, so that start scripts go on working.

The process turns into the server: its number, its signals and its exit code are the server's own.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from allosaur.cli import _trex_options
from allosaur.cli._binary import server_binary
from allosaur.cli._errors import EXIT_OK, CommandError, bad_input
from allosaur.cli._trex_options import Effect

DEFAULT_CONFIG = "/etc/trex_cfg.yaml"
"""Where TRex looks for its configuration."""
_CORES_MAX = 64
_PORTS_MAX = 32
_VERBOSE = 3
"""From this `-v` on the server tells everything."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code. `arguments` are those of the process unless given."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # What comes while the server starts waits for it: then it ends as it should.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        command = _prepare(words)
        if command is None:
            return EXIT_OK
        _become(command)
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _prepare(words: Sequence[str]) -> list[str] | None:
    """Return the words for the server's binary, and say what there is to say; `None` when that was all."""
    found = _trex_options.read(words)
    given = {option.names[0]: argument for _, option, argument in found}
    if "-h" in given:
        print(_trex_options.help_text())
        return None
    for name, option, _ in found:
        if option.effect is Effect.REFUSED:
            raise bad_input(f"{name}: {option.meaning}")
    if "-i" not in given:
        raise bad_input("no mode is given: -i starts the server (batch mode, -f, is not there yet)")
    command = _server_options(given)
    _set_up_process(given)
    warning = _trex_options.warning(found)
    if warning:
        print(warning, file=sys.stderr)
    print(
        "Listening on all addresses, as TRex does: whoever reaches this machine may send. "
        "(allosaur server listens on this machine only.)",
        flush=True,
    )
    return command


def _server_options(given: dict[str, str]) -> list[str]:
    config = given.get("--cfg", DEFAULT_CONFIG)
    if not Path(config).exists():
        way = "correct --cfg" if "--cfg" in given else "name another with --cfg FILE"
        raise bad_input(
            f"there is no configuration file {config}: {way}, or write one with `allosaur config init FILE`"
        )
    words = ["serve", "--config", config, "--listen", "*"]
    cores = _number("-c", given, 1, _CORES_MAX)
    if "-s" in given:
        words += ["--cores", "1"]
    elif cores is not None:
        words += ["--cores-per-pair", str(cores)]
    ports = _number("--limit-ports", given, 1, _PORTS_MAX)
    if ports is not None:
        words += ["--ports-max", str(ports)]
    if "--sleeps" in given:
        words += ["--poll", "adaptive"]
    if _number("--iom", given, 0, 2) != 0:
        words.append("--table")
    return words


def _number(name: str, given: dict[str, str], least: int, most: int) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or not least <= int(text) <= most:
        raise bad_input(f"{name} {text}: write a whole number of {least} to {most}")
    return int(text)


def _set_up_process(given: dict[str, str]) -> None:
    """Set what the server takes over from this process."""
    verbosity = _number("-v", given, 0, 7)
    if verbosity is not None and verbosity >= _VERBOSE:
        os.environ.setdefault("ALLOSAUR_LOG", "debug")
    if "--allow-coredump" in given:
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def _become(command: Sequence[str]) -> NoReturn:
    binary = server_binary()
    sys.stdout.flush()
    try:
        os.execv(binary, [binary, *command])
    except OSError as error:
        raise CommandError(f"cannot start {binary}: {error.strerror}") from error
