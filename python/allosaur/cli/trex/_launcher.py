"""`t-rex-64`: starts our server by the command line of TRex's launcher, so that start scripts go on working.

With `-i` the process turns into the server: its number, its signals and its exit code are the server's own.
With `-f` it runs a stateful profile on a server of its own, and ends.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from allosaur.cli import _options, _standard_streams
from allosaur.cli._binary import become_server_binary
from allosaur.cli._errors import EXIT_OK, CommandError, bad_input
from allosaur.cli.trex import _options as _trex_options
from allosaur.cli.trex._options import Effect
from allosaur.run._command import OwnServer, run
from allosaur.run._files import RunFiles

DEFAULT_CONFIG = "/etc/trex_cfg.yaml"
"""Where TRex looks for its configuration."""
_CORES_MAX = 64
_PORTS_MAX = 32
_WORDS_OF_FILE = 6
"""The words before the options of a server: `serve`, the file, where it listens and whom it serves."""
_BATCH_S = 3600
"""How long TRex runs a profile unless it is told."""
Value = TypeVar("Value")
_VERBOSE = 3
"""From this `-v` on the server tells everything."""


@_standard_streams.unread_is_no_error
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code. `arguments` are those of the process unless given."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if "-i" in words:
        # What comes while the server starts waits for it: then it ends as it should.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        return _launch(words)
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _launch(words: Sequence[str]) -> int:
    """Start the server or run a profile, whatever the words ask for."""
    found = _trex_options.read(words)
    given = {option.names[0]: argument for _, option, argument in found}
    if "-h" in given:
        print(_trex_options.help_text())
        return EXIT_OK
    for name, option, _ in found:
        if option.effect is Effect.REFUSED:
            raise bad_input(f"{name}: {option.meaning}")
    _check_mode(given)
    command = _server_options(given)
    _set_up_process(given)
    warning = _trex_options.warning(found)
    if warning:
        print(warning, file=sys.stderr)
    if "-i" in given:
        _announce()
        become_server_binary(command)
    return _run_batch(given, command)


def _check_mode(given: dict[str, str]) -> None:
    if "-i" in given and "-f" in given:
        raise bad_input("-i and -f: give one of both, -i for clients or -f for one run of a profile")
    if "--astf" in given and "--stl" in given:
        raise bad_input("--astf and --stl: give one of both")
    if "-f" in given and "--astf" not in given:
        raise bad_input(
            "-f: runs stateful profiles, with --astf; for streams -i starts the server, and `allosaur run` "
            "sends a profile (TRex's first stateful mode, with YAML files, is not here)"
        )
    if "-i" not in given and "-f" not in given:
        raise bad_input(
            "no mode is given: -i starts the server; --astf -f PROFILE runs a stateful profile and ends"
        )


def _run_batch(given: dict[str, str], command: list[str]) -> int:
    """Run a stateful profile on a server of our own, and say what came of it, as `allosaur run` does."""
    mask = _mask(given)
    options = argparse.Namespace(
        profile=given["-f"],
        multiplier=given.get("-m", "1"),
        duration=_option("-d", given, _options.duration_s, str(_BATCH_S)),
        tunable=[_option("-t", given, _options.tunables, "")] if given.get("-t") else [],
        latency=_number("-l", given, 1, 10**6),
        ipv6="--ipv6" in given,
        nc="--nc" in given,
        clients=mask,
        servers_only="--astf-server-only" in given or mask == [],
        pid=None,
        establish_within=None,
        close_within=None,
        ports=None,
        local=True,
        force=True,
        report=None,
        json=False,
        fail_if=[],
        files=RunFiles(),
    )
    config = given.get("--cfg", DEFAULT_CONFIG)
    # The first words are those for the file, and where to listen: a run has a server of its own.
    return run(options, OwnServer(config, command[_WORDS_OF_FILE:]))


def _mask(given: dict[str, str]) -> list[int] | None:
    text = given.get("--astf-client-mask")
    if text is None:
        return None
    try:
        mask = int(text, 0)
    except ValueError:
        raise bad_input(f"--astf-client-mask {text}: write a number, such as 0x1") from None
    return [port for port in range(_PORTS_MAX) if mask >> port & 1]


def _option(name: str, given: dict[str, str], read: Callable[[str], Value], default: str) -> Value:
    text = given.get(name, default)
    try:
        return read(text)
    except argparse.ArgumentTypeError as error:
        raise bad_input(f"{name} {text}: {error}") from None


def _announce() -> None:
    print(
        "Listening on all addresses, as TRex does: whoever reaches this machine may send. "
        "(allosaur server listens on this machine only.)",
        flush=True,
    )


def _server_options(given: dict[str, str]) -> list[str]:
    config = given.get("--cfg", DEFAULT_CONFIG)
    if not Path(config).exists():
        way = "correct --cfg" if "--cfg" in given else "name another with --cfg FILE"
        raise bad_input(
            f"there is no configuration file {config}: {way}, or write one with `allosaur config init FILE`"
        )
    words = ["serve", "--config", config, "--listen", "*", "--open"]
    words.append("--stateful" if "--astf" in given else "--stateless")
    cores = _number("-c", given, 1, _CORES_MAX)
    if "-s" in given:
        words += ["--cores", "1"]
    elif cores is not None:
        words += ["--cores-per-pair", str(cores)]
    ports = _number("--limit-ports", given, 1, _PORTS_MAX)
    if ports is not None:
        words += ["--ports-max", str(ports)]
    if "--prom" in given:
        words.append("--promiscuous")
    if "--emu" in given:
        words.append("--emu")
    if "--bird-server" in given:
        words.append("--bird-server")
    if "--emu-zmq" in given or "--emu-zmq-tcp" in given:
        words += ["--emu-zmq", "tcp" if "--emu-zmq-tcp" in given else "ipc"]
    if "--sleeps" in given:
        words += ["--poll", "adaptive"]
    if _number("--iom", given, 0, 2) != 0 and "-f" not in given:
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
