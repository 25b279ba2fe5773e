"""`streams` and `profiles`: what is loaded."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli._answer import Answer
from allosaur.cli._errors import bad_input
from allosaur.cli.console import _arguments, _tables
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session

if TYPE_CHECKING:
    from allosaur import STLStream

_HEADER = ("ID", "name", "profile", "packet type", "length", "mode", "rate", "PG ID", "next")
_NONE = "No streams found with desired filter."


class Streams(ConsoleCommand):
    """`streams`."""

    name = "streams"
    summary = "show the streams of ports, or the code that makes them"
    group = "Stateless"
    example = "streams -p 0 --code my_profile.py"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)
        _arguments.stream_ids(parser)
        parser.add_argument(
            "--code", nargs="?", const="", metavar="FILE.py", help="the code, into a file or shown"
        )

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        found: dict[int, dict[int, STLStream]] = {}
        for number in _arguments.chosen(session, options):
            streams = dict(sorted(session.client.get_port(number).streams.items()))
            kept = {one: stream for one, stream in streams.items() if not options.ids or one in options.ids}
            if kept:
                found[number] = kept
        if not found:
            return Answer(_NONE, {"streams": {}})
        if options.code is not None:
            return _code(found, options.code)
        tables = [
            _tables.titled(f"Port {number}:", _HEADER, _rows(session, number, streams))
            for number, streams in found.items()
        ]
        fields = {
            str(number): {str(one): stream.to_json() for one, stream in streams.items()}
            for number, streams in found.items()
        }
        return Answer("\n".join(tables), {"streams": fields})


class Profiles(ConsoleCommand):
    """`profiles`, of streams."""

    name = "profiles"
    summary = "show the profiles of ports and their states"
    group = "Stateless"
    example = "profiles -p 0"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        return loaded_profiles(session, _arguments.chosen(session, options))


def loaded_profiles(session: Session, ports: list[int]) -> Answer:
    """Return the profiles of ports that have streams."""
    fields: dict[str, Any] = {}
    tables = []
    for number in ports:
        known = dict(session.client.get_port(number).profiles)
        loaded = {name: one for name, one in known.items() if one.is_loaded}
        if loaded:
            rows = [[name, one.state, ", ".join(map(str, one.streams))] for name, one in loaded.items()]
            tables.append(_tables.titled(f"Port {number}:", ["Profile ID", "state", "stream ID"], rows))
            fields[str(number)] = {
                name: {"state": one.state, "streams": list(one.streams)} for name, one in loaded.items()
            }
    return Answer("\n".join(tables) or "No profiles found with desired filter.", {"profiles": fields})


def _rows(session: Session, number: int, streams: dict[int, STLStream]) -> list[list[str]]:
    profiles = dict(session.client.get_port(number).profiles)
    of_stream = {one: name for name, profile in profiles.items() for one in profile.streams}
    return [
        [
            *(str(one), str(stream.get_name() or "-"), of_stream.get(one, "-"), _layers(stream)),
            *(str(stream.get_pkt_len()), stream.get_mode(), stream.get_rate()),
            *(str(stream.get_pg_id() if stream.has_flow_stats() else "-"), str(stream.get_next() or "-")),
        ]
        for one, stream in streams.items()
    ]


def _layers(stream: STLStream) -> str:
    """Return the headers of a stream's packet: `Ethernet:IP:UDP:Raw`."""
    if stream.is_dummy():
        return "-"
    from allosaur.api import Ether

    packet = Ether(stream.get_pkt())
    return ":".join(layer.__name__.replace("Ether", "Ethernet") for layer in packet.layers())


def _code(found: dict[int, dict[int, STLStream]], file: str) -> Answer:
    from allosaur import STLProfile

    code = {number: STLProfile(list(streams.values())).dump_to_code() for number, streams in found.items()}
    if not file:
        texts = [f"Port: {number}\n\n{text}" for number, text in code.items()]
        return Answer("\n".join(texts), {"code": {str(number): text for number, text in code.items()}})
    if not file.endswith(".py"):
        raise bad_input(f"--code {file}: the name must end in .py")
    paths = {number: Path(file if len(code) == 1 else f"{file[:-3]}_port{number}.py") for number in code}
    for number, path in paths.items():
        if path.exists():
            raise bad_input(f"--code {path}: is there already; name another file")
        path.write_text(code[number], encoding="utf-8")
    names = [str(path) for path in paths.values()]
    return done(f"Saving file as: {', '.join(names)}", files=names)
