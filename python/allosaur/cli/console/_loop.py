"""Where lines come from: a file, a pipe, or somebody who types; and what a line that fails means there."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from allosaur._files import no_file
from allosaur.cli import _output
from allosaur.cli._errors import EXIT_INTERRUPTED, EXIT_OK, CommandError, bad_input
from allosaur.cli.console import _line
from allosaur.cli.console._session import Session
from allosaur.cli.console.commands import of_session


def batch(path: str, session: Session) -> int:
    """Do the lines of a file; the first that fails ends it. Returns its exit code."""
    lines = batch_lines(path)
    say(session, f"Running script file '{path}'...")
    for number, text in enumerate(lines, 1):
        if not _is_command(text):
            continue
        say(session, f"Executing line {number} : '{text.strip()}'")
        code = line(text, session)
        if code != EXIT_OK:
            print(f"error: {path}, line {number} failed; nothing behind it was done", file=sys.stderr)
            return code
        if session.is_over:
            return EXIT_OK
    say(session, "[Done]")
    return EXIT_OK


def check_batch(path: str) -> None:
    """Refuse a file that is not there before anything is done. Raises :class:`CommandError`."""
    if path != _output.STDOUT and (why := no_file(path, may_be_pipe=True)):
        raise bad_input(f"--batch {path}: {why}")


def batch_lines(path: str) -> list[str]:
    """Return the lines of a file of commands; `-` is the standard input. Raises :class:`CommandError`."""
    if path == _output.STDOUT:
        return sys.stdin.read().splitlines()
    check_batch(path)
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise bad_input(f"--batch {path}: is not text") from None


def interactive(session: Session) -> int:
    """Do what comes on the standard input: typed on a terminal, else piped."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        return piped(sys.stdin, session)
    if (
        not session.settings.is_trex and not session.settings.only_emulation
    ):  # it says that in any case, before a file of commands
        introduce(session)
    return typed(session)


def piped(lines: Iterable[str], session: Session) -> int:
    """Do lines as they come; those that fail do not end it. Returns the exit code of the first that did."""
    first = EXIT_OK
    try:
        for text in lines:
            if not _is_command(text):
                continue
            code = line(text, session)
            first = first or code
            if session.is_over:
                break
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return first


def typed(session: Session) -> int:
    """Do what somebody types, until `quit`, Ctrl-D, or Ctrl-C on an empty line, as in TRex's console."""
    try:
        from allosaur.cli.console._prompt import Prompt
    except ModuleNotFoundError as error:
        raise CommandError(
            "prompt_toolkit is not installed, which reads what is typed: `pip install prompt_toolkit`, or "
            "give --batch FILE"
        ) from error
    prompt = Prompt(session)
    while not session.is_over:
        for warning in session.new_warnings():
            print(warning, file=sys.stderr, flush=True)
        text = prompt.read()
        if text is None:
            break
        if _is_command(text):
            try:
                line(text, session)
            except KeyboardInterrupt:  # between two commands of the line
                print("error: interrupted", file=sys.stderr, flush=True)
    return EXIT_OK


def line(text: str, session: Session) -> int:
    """Do the commands of one line in order; the first that fails ends it. Returns its exit code."""
    session.commands = of_session(session)
    code = EXIT_OK
    for part in _line.parts(text):
        code = _line.do(part, session)
        session.commands = of_session(session)
        if code != EXIT_OK or session.is_over:
            break
    if not text.lstrip().startswith(("history", "h ", "!")):
        session.history.append(text.strip())
    return code


def introduce(session: Session) -> None:
    """Say which server this is."""
    info, version = session.client.get_server_system_info(), session.client.get_server_version()
    kinds = {"STL": "Stateless", "ASTF": "Advanced Stateful"}
    both = " (and stateful: `mode stateful`)" if session.client.has_both_modes() else ""
    if session.mode == "ASTF" and both:
        both = " (and stateless: `mode stateless`)"
    ports = ", ".join(str(port.get("description") or port.get("driver")) for port in info["ports"])
    lines = (
        "",
        "Server Info:",
        "",
        f"Server version:   {version.get('version')} @ {version.get('mode')}",
        f"Server mode:      {kinds[str(session.mode)]}{both}",
        f"Server CPU:       {info.get('dp_core_count')} x {info.get('core_type')}",
        f"Ports count:      {info.get('port_count')}: {ports}",
        "",
    )
    for text in lines:
        say(session, text)
    if session.settings.readonly:
        say(session, "Read only mode - only few commands will be available")


def say(session: Session, text: str) -> None:
    """Print what is for people only."""
    if not session.settings.json and not session.settings.quiet:
        print(text, flush=True)


def _is_command(text: str) -> bool:
    return bool(text.strip()) and not text.strip().startswith("#")
