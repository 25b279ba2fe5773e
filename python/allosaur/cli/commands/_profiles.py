"""`allosaur profiles` and `new`: what comes with the package, and a profile of one's own to begin with."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from pathlib import Path
from typing import Any

from allosaur.cli import _arguments, _shipped
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_OK, bad_input
from allosaur.cli._shipped import Shipped

_INDENT = "      "
_TITLES = {
    "stateless": "Streams (stateless)",
    "stateful": "Flows (stateful: for servers with --stateful, or --local)",
    "emulation": "Emulated clients (for `allosaur emu load`, on servers with --emu)",
}


class Profiles(Command):
    """`allosaur profiles`."""

    name = "profiles"
    summary = "list the profiles that come with allosaur, and their tunables"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", metavar="PROFILE", nargs="?", help="tell more of this one")
        _arguments.json_output(parser)

    def run(self, options: argparse.Namespace) -> int:
        if options.name is None:
            found = [_shipped.described(path) for path in _shipped.files().values()]
            text = _list(found)
        else:
            path = Path(_shipped.located(options.name))
            _shipped.check(path)
            if path.suffix != ".py":
                raise bad_input(f"profile {path}: only Python profiles say what they are")
            try:
                found = [_shipped.described(path)]
            except (SyntaxError, ValueError) as error:
                raise bad_input(f"profile {path}: {error}") from error
            text = _details(found[0])
        result = {"command": "profiles", "ok": True, "profiles": [_json_object(one) for one in found]}
        print(json.dumps(result, indent=2) if options.json else text)
        return EXIT_OK


def _list(found: list[Shipped]) -> str:
    lines: list[str] = []
    for kind, title in _TITLES.items():
        lines += [f"{title}:", ""]
        for one in found:
            if one.kind == kind:
                lines += [*_wrapped(f"  {one.name}: {one.summary}"), *_tunables(one)]
        lines.append("")
    lines += [
        "allosaur profiles NAME         tells more of one, and where it is",
        "allosaur run NAME --local      sends it between ports in memory",
        "allosaur emu load NAME         emulates its clients",
        "allosaur new FILE.py           writes one to begin with",
    ]
    return "\n".join(lines)


def _tunables(one: Shipped) -> list[str]:
    return _wrapped(f"{_INDENT}-t {' '.join(map(str, one.tunables))}") if one.tunables else []


def _details(one: Shipped) -> str:
    rows = [f"  {tunable}  {tunable.description}".rstrip() for tunable in one.tunables]
    parts = [one.text, "Defaults:" if rows else "It has no tunables.", *rows, "", f"File: {one.path}"]
    return "\n".join(parts)


def _wrapped(line: str) -> list[str]:
    width = max(60, min(110, shutil.get_terminal_size((100, 24)).columns))
    text = line.lstrip()
    begin = line[: len(line) - len(text)]
    return textwrap.wrap(text, width, initial_indent=begin, subsequent_indent=_INDENT)


def _json_object(one: Shipped) -> dict[str, Any]:
    return {
        "name": one.name,
        "mode": one.kind,
        "summary": one.summary,
        "tunables": [
            {"name": tunable.name, "default": tunable.default, "description": tunable.description}
            for tunable in one.tunables
        ],
        "file": str(one.path),
    }


class New(Command):
    """`allosaur new`."""

    name = "new"
    summary = "write a profile to begin with"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "name", metavar="NAME", help="the file to write; .py is added where it is missing"
        )
        parser.add_argument("--stateful", action="store_true", help="flows over TCP and UDP, not streams")
        parser.add_argument("--force", action="store_true", help="write over a file that is there")
        _arguments.json_output(parser)

    def run(self, options: argparse.Namespace) -> int:
        path = Path(options.name if options.name.endswith(".py") else f"{options.name}.py")
        if path.exists() and not options.force:
            raise bad_input(f"{path}: is there already; name another, or add --force to write over it")
        begin = _shipped.FOLDER / "new" / ("flows.py" if options.stateful else "streams.py")
        text = begin.read_text(encoding="utf-8").replace("NAME.py", str(path))
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise bad_input(f"{path}: cannot be written: {error.strerror}; name another") from error
        rate = "-m 10 -d 10" if options.stateful else "-m 10kpps -d 10 --ports 0,1"
        words = f"Wrote {path}. Change it, then:\n" + "\n".join(
            [
                f"  allosaur sim {path} -o out.pcap    see its packets without sending them",
                f"  allosaur run {path} {rate} --local    send it between two ports in memory",
            ]
        )
        result = {"command": "new", "ok": True, "file": str(path)}
        print(json.dumps(result, indent=2) if options.json else words)
        return EXIT_OK
