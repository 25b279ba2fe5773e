"""Write the man pages of all commands, from the parsers that read their words: man.py FOLDER [SERVER].

A page for each command of `allosaur`, as git has them; the exit codes are those of the guide. With the
server's program there is a page of what it says of itself.
"""

from __future__ import annotations

import argparse
import functools
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from allosaur.cli import _parser
from allosaur.cli.commands import COMMANDS
from allosaur.cli.trex import _astf_sim, _console, _emu_sim, _ndr, _options
from argparse_manpage.manpage import Manpage

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guide" / "command-line.md"
MANUAL = "Allosaur"
#: Wider than any text: troff fills lines, and a line that argparse breaks may begin with a dot.
WIDE = functools.partial(argparse.HelpFormatter, width=100_000)


def pages() -> dict[str, str]:
    """Return the text of each page, by the name of its file."""
    whole = _parser.build(COMMANDS)
    alone = _parser.build([])
    summaries = {command.name: command.summary for command in COMMANDS}
    listed = "\n".join(
        f".TP\n\\fB{_roff(f'allosaur-{name}')}\\fR(1)\n{_roff(text[0].upper() + text[1:])}."
        for name, text in summaries.items()
    )
    made = {"allosaur": _page("allosaur", alone, "open, realistic traffic generator", {"commands": listed})}
    for action in whole._actions:
        for name, parser in (action.choices or {}).items() if isinstance(action.choices, dict) else ():
            made[f"allosaur-{name}"] = _page(f"allosaur-{name}", parser, summaries[name], {})
    made["trex-console"] = _page(
        "trex-console", _console._parser(), "console with TRex's commands and options", {}
    )
    made["emu-sim"] = _page(
        "emu-sim", _emu_sim.parser(), "simulation of emulated clients, by TRex's options", {}
    )
    made["astf-sim"] = _page(
        "astf-sim", _astf_sim._parser(), "simulator of stateful profiles, by TRex's options", {}
    )
    made["ndr"] = _page("ndr", _ndr._parser(), "search for NDR, by TRex's options", {})
    made["t-rex-64"] = _page(
        "t-rex-64", _launcher(), "server of Allosaur, by the options of TRex's launcher", {}
    )
    return {f"{name}.1": text for name, text in made.items()}


def _launcher() -> argparse.ArgumentParser:
    """Return a parser with the options of TRex's launcher, which reads them in a way of its own."""
    parser = argparse.ArgumentParser(prog="t-rex-64", add_help=False, description=_options.__doc__)
    for option in _options.OPTIONS:
        metavar: dict[str, Any] = (
            {"metavar": option.argument} if option.argument else {"action": "store_true"}
        )
        parser.add_argument(
            *option.names, help=option.meaning.replace("%", "%%"), dest=option.names[0], **metavar
        )
    return parser


def _page(name: str, parser: argparse.ArgumentParser, summary: str, sections: dict[str, str]) -> str:
    for one in _with_inner(parser):
        one.formatter_class = WIDE  # type: ignore[assignment]
    page = Manpage(parser, format="single-commands-section")
    page.prog, page.manual, page.source, page.description = name, MANUAL, MANUAL, summary
    also = {"allosaur": 1, "allosaur-help": 1, "allosaur-server": 8}
    also.pop(name, None)
    for heading, text in {**sections, "exit status": exit_codes()}.items():
        page.add_section(heading, ">", text)
    page.add_section(
        "see also", ">", ", ".join(f"\\fB{_roff(one)}\\fR({number})" for one, number in also.items())
    )
    return str(page)


def _with_inner(parser: argparse.ArgumentParser) -> Iterable[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _with_inner(inner)


def exit_codes() -> str:
    """Return the table of the guide."""
    section = GUIDE.read_text(encoding="utf-8").split("\n## Exit codes\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| ([0-9, ]+) \| (.*) \|$", section, re.MULTILINE)
    return "\n".join(f".TP\n\\fB{codes}\\fR\n{_roff(meaning.replace('`', ''))}." for codes, meaning in rows)


def server_page(program: str) -> str:
    """Return the page of the server's program: its own help, command by command."""

    def help_of(*words: str) -> str:
        done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True)
        lines = [_roff(line.rstrip()) for line in done.stdout.splitlines()]
        return "\n".join(
            [".nf", *(f"\\&{line}" if line[:1] in (".", "'") else line for line in lines), ".fi"]
        )

    whole = help_of()
    names = re.findall(r"^  ([a-z-]+)  ", whole.replace("\\-", "-").partition("Commands:")[2], re.MULTILINE)
    sections = [f".SH {name.upper()}\n{help_of(name)}" for name in names if name != "help"]
    head = f'.TH ALLOSAUR\\-SERVER 8 "" "{MANUAL}" "{MANUAL}"\n.SH NAME\nallosaur\\-server \\- server'
    tail = f".SH EXIT STATUS\n{exit_codes()}\n.SH SEE ALSO\n\\fBallosaur\\fR(1)\n"
    return "\n".join(
        [f"{head} of Allosaur, a traffic generator", f".SH DESCRIPTION\n{whole}", *sections, tail]
    )


def _roff(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3 or sys.argv[1].startswith("-"):
        sys.exit("usage: man.py FOLDER [SERVER]")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    if len(sys.argv) > 2:
        made["allosaur-server.8"] = server_page(sys.argv[2])
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
