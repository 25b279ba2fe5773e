"""`help`, `history`, `verbose`, `shell`, `mode`, `quit`: commands about the console itself."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from allosaur.cli._answer import Answer
from allosaur.cli._errors import EXIT_OK, CommandError, bad_input
from allosaur.cli._modes import MODES
from allosaur.cli._parser import nearest
from allosaur.cli.console import _line
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session

_WIDTH_MIN = 24


class Help(ConsoleCommand):
    """`help`."""

    name = "help"
    summary = "list the commands, or explain one with an example"
    group = "Console"
    example = "help start"
    needs_server = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("of", nargs="?", metavar="COMMAND", help="tell of this command")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        commands = {name: one for name, one in session.commands.items() if isinstance(one, ConsoleCommand)}
        if options.of is not None:
            if options.of not in commands:
                near = nearest(options.of, commands)
                raise bad_input(f"there is no command '{options.of}'{near or '; see `help`'}")
            text = _line.parser_of(commands[options.of]).format_help().rstrip()
            return Answer(text, {"help": text, "example": commands[options.of].example})
        own = {name: one for name, one in commands.items() if one.name == name}
        lines = []
        for group in dict.fromkeys(one.group for one in own.values()):
            listed = {name: one.summary for name, one in own.items() if one.group == group}
            width = max(_WIDTH_MIN, max(map(len, listed)) + 2)
            lines += ["", f"{group}:", "", *(f"  {name:<{width}}{text}" for name, text in listed.items())]
        lines += ["", "`help COMMAND` explains one and gives an example."]
        fields = {name: {"summary": one.summary, "example": one.example} for name, one in own.items()}
        return Answer("\n".join(lines), {"commands": fields})


class History(ConsoleCommand):
    """`history`."""

    name = "history"
    summary = "list what was typed, or do a line of it again"
    group = "Console"
    example = "history 3"
    needs_server = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("item", nargs="?", type=int, default=0, metavar="N", help="do line N again")

    def run(self, options: argparse.Namespace) -> int:
        session: Session = options.session
        if not options.item:
            return super().run(options)
        if not 0 < options.item <= len(session.history):
            raise bad_input(f"history {options.item}: there are lines 1 to {len(session.history)}")
        text = session.history[options.item - 1]
        if text.split()[0] in (self.name, "h") or text.startswith("!"):
            raise bad_input(f"history {options.item}: that line is '{text}' itself")
        print(f"Executing '{text}'")
        codes = [_line.do(part, session) for part in _line.parts(text)]
        return next((code for code in codes if code != EXIT_OK), EXIT_OK)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        lines = [f"{number:<5}   {text}" for number, text in enumerate(session.history, 1)]
        return Answer("\n".join(lines), {"history": session.history})


class Verbose(ConsoleCommand):
    """`verbose`."""

    name = "verbose"
    summary = "print each request to the server and each reply, or end that"
    group = "Console"
    example = "verbose on"
    needs_server = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("wanted", nargs="?", choices=("on", "off"), metavar="on|off", help="switch it")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        if options.wanted is None:
            word = "on" if session.settings.verbose else "off"
            return Answer(f"verbose is {word}", {"verbose": session.settings.verbose})
        session.set_verbose(options.wanted == "on")
        return Answer(f"verbose set to {options.wanted}", {"verbose": options.wanted == "on"})


class Shell(ConsoleCommand):
    """`shell`."""

    name = "shell"
    summary = "open IPython with the client of this console as `client`"
    group = "Console"
    example = "shell"

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        try:
            embed: Any = importlib.import_module("IPython.terminal.embed")
            config: Any = importlib.import_module("traitlets.config").Config()
        except ImportError as error:
            raise CommandError("shell: IPython is not installed; `pip install ipython` brings it") from error
        config.TerminalInteractiveShell.confirm_exit = False
        banner = "`client` is the console's client; Ctrl-D returns to the console."
        # A shell of its own each time: IPython's embedded one remembers that it was ended.
        embed.InteractiveShellEmbed(config=config, banner1=banner, user_ns={"client": session.client})()
        return Answer("")


class Debug(Shell):
    """`debug`: TRex's name for it."""

    name = "debug"
    summary = "the same as `shell`"
    example = "debug"


class Mode(ConsoleCommand):
    """`mode`."""

    name = "mode"
    summary = "say or change the kind of traffic, on a server that has both"
    group = "Console"
    example = "mode stateless"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        names = tuple(MODES.values())
        parser.add_argument("wanted", nargs="?", choices=names, metavar="|".join(names), help="change to it")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        now = MODES[session.client.get_mode()]
        if options.wanted in (None, now):
            return Answer(f"The console is {now}.", {"mode": now})
        session.switch(next(mode for mode, name in MODES.items() if name == options.wanted))
        return done(f"The console is {options.wanted} now", mode=options.wanted)


class Quit(ConsoleCommand):
    """`quit`."""

    name = "quit"
    summary = "leave; ports are released, traffic goes on"
    group = "Console"
    example = "quit"
    needs_server = False

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        session.is_over = True
        return Answer("")
