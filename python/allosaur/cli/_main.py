"""The `allosaur` command: reads its words, has the command executed, and prints every error in one place.

Imports only the standard library: what a command needs is imported when it runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from allosaur.cli import _completion, _output, _output_file, _parser, _standard_streams
from allosaur.cli._command import Command
from allosaur.cli._errors import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_SETUP,
    CommandError,
    refusal,
)
from allosaur.cli.commands import COMMANDS


def main(arguments: Sequence[str] | None = None, commands: Sequence[Command] = COMMANDS) -> int:
    """Run the command line; return the exit code. `arguments` are those of the process unless given.

    A console calls it for each line, with commands of its own among them.
    """
    if _completion.is_asked():
        _completion.answer(commands)
    _standard_streams.prepare()
    given = list(sys.argv[1:] if arguments is None else arguments)
    # What follows is of the program that `node exec` runs.
    end = given.index("--") if "--" in given else len(given)
    own = _with_json_files(given[:end])
    words = own + given[end:]
    debug = "--debug" in own or os.environ.get("ALLOSAUR_DEBUG", "") not in ("", "0")
    warnings.showwarning = _show_warning
    try:
        exit_code = _execute(words, commands)
        sys.stdout.flush()
        return exit_code
    except BrokenPipeError:
        # Whoever read our output went away (as `head` does): nothing is left to say to them.
        _standard_streams.give_up()
        return EXIT_OK
    except (Exception, KeyboardInterrupt) as error:
        exit_code, message = _explain(_standard_streams.named(error), debug)
        if debug:
            traceback.print_exc()
    _standard_streams.complain(f"error: {message}")
    _tell_json(own, exit_code, message)
    return exit_code


def _execute(words: Sequence[str], commands: Sequence[Command]) -> int:
    parser = _parser.build(commands)
    try:
        options, unknown = parser.parse_known_args(words)
    except SystemExit as stop:  # --help ends this way
        return stop.code if isinstance(stop.code, int) else EXIT_SETUP
    if unknown:
        options.parser.refuse_words(unknown)
    if options.version:
        print(f"allosaur {_version()}")
        return EXIT_OK
    if options.command is None:
        parser.print_help()
        return EXIT_OK
    options.quiet = getattr(options, "quiet", False)
    options.json = getattr(options, "json", None)
    _output.prepare(options)
    command: Command = options.execute
    with _colors(not getattr(options, "no_color", False)), _output.directed(options, command.is_result):
        exit_code = command.run(options)
        sys.stdout.flush()
    return exit_code


@contextlib.contextmanager
def _colors(wanted: bool) -> Iterator[None]:
    """Without colors, say so in the environment, for this program and those that it starts."""
    before = os.environ.get("NO_COLOR")
    if not wanted:
        os.environ["NO_COLOR"] = "1"
    try:
        yield
    finally:
        if not wanted and before is None:
            del os.environ["NO_COLOR"]


def _with_json_files(words: list[str]) -> list[str]:
    """Join `--json` and its file: what follows it is one only by its name, else it is PROFILE or the like."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--json" and word.endswith(".json"):
            joined[-1] = f"--json={word}"
        else:
            joined.append(word)
    return [f"--json={_output.STDOUT}" if word == "--json" else word for word in joined]


def _explain(error: BaseException, debug: bool) -> tuple[int, str]:
    """Return the exit code and the message of whatever ended a command."""
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED, "stopped"
    known = refusal(error)
    if known is not None:
        return known.exit_code, str(known)
    hint = "" if debug else "; this is a defect: run again with --debug and report what it prints"
    return EXIT_SETUP, f"{type(error).__name__}: {error}{hint}"


def _tell_json(words: Sequence[str], exit_code: int, message: str) -> None:
    """Tell a program of an error, where it reads JSON."""
    asked = [word.partition("=")[2] for word in words if word.startswith("--json=")]
    if not asked:
        return
    command = next((word for word in words if not word.startswith("-")), None)
    text = json.dumps({"command": command, "ok": False, "error": message, "exit_code": exit_code})
    if asked[-1] == _output.STDOUT:
        try:
            print(text, flush=True)
        except OSError as error:
            _standard_streams.give_up()
            _standard_streams.complain(f"warning: {_standard_streams.named(error)}")
        return
    try:
        _output_file.write("--json", Path(asked[-1]), text + "\n")
    except CommandError as error:
        print(f"warning: {error}", file=sys.stderr)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    """Print a warning as this program prints all."""
    print(f"warning: {message}", file=sys.stderr)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("allosaur")
    except PackageNotFoundError:
        return "(not installed, running from its source)"
