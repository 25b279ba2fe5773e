"""A line of the console: taken apart, its commands done, and their errors printed as all of this program."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping

from allosaur.cli import _parser, _remedies
from allosaur.cli._command import Command
from allosaur.cli._errors import (
    EXIT_INTERRUPTED,
    EXIT_SETUP,
    CommandError,
    bad_input,
    refusal,
)
from allosaur.cli.console._command import ConsoleCommand, NotYet
from allosaur.cli.console._session import Session


def parts(line: str) -> list[str]:
    """Return the commands of a line, which semicolons separate, where they are not within quotes."""
    found, quote = [""], ""
    for letter in line:
        if letter == ";" and not quote:
            found.append("")
            continue
        if letter in "'\"" and quote in ("", letter):
            quote = "" if quote else letter
        found[-1] += letter
    return [part.strip() for part in found if part.strip()]


def words(text: str, commands: Mapping[str, Command]) -> list[str]:
    """Return the words of a command. Raises :class:`CommandError`."""
    if text[:1] in "?!":  # as TRex's console, by way of Python's `cmd`
        text = ("help " if text[0] == "?" else "history ") + text[1:]
    name = text.partition(" ")[0]
    command = commands.get(name)
    if isinstance(command, ConsoleCommand) and command.raw_words:
        return text.split()
    try:
        return shlex.split(text)
    except ValueError as error:
        raise bad_input(f"{text}: {str(error).lower()}") from None


def parser_of(command: ConsoleCommand) -> argparse.ArgumentParser:
    """Return the parser of a command's own words."""
    parser = _parser.Parser(
        prog=command.name,
        description=command.description,
        epilog=f"example: {command.example}",
    )
    command.add_arguments(parser)
    parser.set_defaults(command=command.name)
    return parser


def do(text: str, session: Session) -> int:
    """Do one command; return its exit code. What it raises is printed here."""
    name = text.split()[0]
    try:
        with _remedies.of_console():
            return _execute(text, session)
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        message, exit_code = f"{name}: interrupted", EXIT_INTERRUPTED
    except Exception as error:
        with _remedies.of_console():
            known = refusal(error)
        if known is None:
            known = CommandError(f"{name}: {type(error).__name__}: {error}; this is a defect, report it")
        message, exit_code = str(known), known.exit_code
    sys.stdout.flush()
    print(f"error: {message}", file=sys.stderr, flush=True)
    if session.settings.json:
        fields = {"command": name, "ok": False, "error": message, "exit_code": exit_code}
        print(json.dumps(fields), flush=True)
    return exit_code


def _execute(text: str, session: Session) -> int:
    name, *rest = words(text, session.commands)
    command = session.commands.get(name)
    if not isinstance(command, ConsoleCommand):
        near = _parser.nearest(name, session.commands) or "; see `help`"
        raise bad_input(f"there is no command '{name}'{near}")
    parser = parser_of(command)
    try:
        options, unknown = parser.parse_known_args(rest)
    except SystemExit as stop:  # --help ends this way
        return stop.code if isinstance(stop.code, int) else EXIT_SETUP
    if unknown and not isinstance(command, NotYet):
        options.parser.refuse_words(unknown)
    options.session = session
    return command.run(options)
