"""`allosaur sim` with streams: the packets a profile would send, as a capture file, in virtual time.

The engine is the server's own; this only gives it the requests and describes what it wrote.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allosaur._files import no_file
from allosaur.cli import _format, _output_file, _profile, _simulated
from allosaur.cli._binary import exit_code_of, last_words, server_binary
from allosaur.cli._errors import EXIT_OK, EXIT_USAGE, CommandError, bad_input, explained
from allosaur.cli._simulated import CaptureSummary, summarize

DEFAULT_LIMIT_PACKETS = 5000


def run(options: argparse.Namespace) -> int:
    """Do what `allosaur sim` says, with streams; return the exit code."""
    source = options.commands or options.profile
    with _output(options) as output, _commands_file(options) as commands:
        _simulate(commands, output, options, source)
        written = summarize(output)
        is_listed = options.list or options.output is None
        limit = options.limit or _simulated.LIMIT_PACKETS
        packets = _simulated.listed(output, limit) if is_listed else []
    if options.json:
        more = {"listed": packets} if is_listed else {}
        print(json.dumps({**_json_object(options, written), **more}, indent=2))
        return EXIT_OK
    if is_listed:
        print(_simulated.text(packets, written.packets) + "\n")
    print(_text(options.output, written))
    return EXIT_OK


@contextlib.contextmanager
def _output(options: argparse.Namespace) -> Iterator[Path]:
    """Give the capture file to write: the user's, or one that is thrown away after."""
    if options.output is not None:
        yield _output_file.checked("-o", options.output)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "out.pcap"


@contextlib.contextmanager
def _commands_file(options: argparse.Namespace) -> Iterator[Path]:
    """Give the file of requests: the user's, or one made from the profile and thrown away after."""
    if options.commands is not None:
        path = Path(options.commands)
        if why := no_file(path, may_be_pipe=True):
            raise bad_input(f"--commands {path}: {why}")
        yield path
        return
    path = Path(options.profile)
    profile = _profile.load(path, options.direction, 0, _profile.merged(options.tunable))
    with explained(f"profile {path}", EXIT_USAGE):
        requests = profile.to_commands(0, options.multiplier, options.duration)
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump({"commands": requests}, file)
        file.flush()
        yield Path(file.name)


def _simulate(commands: Path, output: Path, options: argparse.Namespace, source: str) -> None:
    limit = options.limit
    if limit is None and options.commands is None:
        limit = _simulated.LIMIT_PACKETS if options.output is None else DEFAULT_LIMIT_PACKETS
    command = [server_binary(), "sim", "--commands", str(commands), "-o", str(output)]
    command += ["--limit", str(limit)] if limit is not None else []
    command += ["--cores", str(options.cores)] if options.cores is not None else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != EXIT_OK:
        # The user knows the source, not the file of requests that was made from it.
        message = last_words(done.stderr).replace(str(commands), source)
        known = source in message or str(output) in message
        raise CommandError(message if known else f"{source}: {message}", exit_code_of(done.returncode))


def _text(output: str | None, written: CaptureSummary) -> str:
    rows = [
        ["packets", _format.count(written.packets)],
        ["bytes (with FCS)", _format.count(written.bytes)],
    ]
    if written.packets:
        rows += [
            ["smallest frame", f"{written.smallest} bytes"],
            ["largest frame", f"{written.largest} bytes"],
            ["first packet", _format.seconds(written.first_s)],
            ["last packet", _format.seconds(written.last_s)],
            ["duration", _format.seconds(written.last_s - written.first_s)],
        ]
    table = _format.table(["what", "value"], rows)
    return table if output is None else f"{table}\n\nWrote {output}."


def _json_object(options: argparse.Namespace, written: CaptureSummary) -> dict[str, Any]:
    return {
        "command": "sim",
        "ok": True,
        "profile": options.profile,
        "commands": options.commands,
        "output": options.output,
        "packets": written.packets,
        "bytes": written.bytes,
        "smallest_frame_bytes": written.smallest,
        "largest_frame_bytes": written.largest,
        "first_s": written.first_s,
        "last_s": written.last_s,
    }
