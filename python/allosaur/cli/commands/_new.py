"""`allosaur new`: a profile of one's own to begin with."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from allosaur.cli import _arguments, _shipped
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_OK, bad_input


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
