"""`start`, `stop`, `update`, `pause`, `resume`, `push`, `wait`: streams on their way."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur._files import no_file
from allosaur.cli import _format, _profile, _shipped
from allosaur.cli._answer import Answer
from allosaur.cli._errors import CommandError, bad_input
from allosaur.cli.console import _arguments
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session

if TYPE_CHECKING:
    from allosaur import PortProfileID, STLClient


class Start(ConsoleCommand):
    """`start`, of streams."""

    name = "start"
    summary = "load a profile of streams onto ports and start it"
    group = "Stateless"
    example = "start -f imix -p 0 -m 10kpps -d 10"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.places(parser)
        add = parser.add_argument
        add("--total", action="store_true", help="-m is the rate of all ports together")
        add("--force", action="store_true", help="stop what runs, and start above the line rate")
        _arguments.file(parser, "the profile: a file, or a name of `allosaur profiles`")
        _arguments.duration(parser, "-d", -1.0, "how long; without it until `stop`")
        _arguments.tunables(parser)
        _arguments.multiplier(parser)
        add("-n", "--dry", action="store_true", help="show what would be sent, send nothing")
        cores = parser.add_mutually_exclusive_group()
        cores.add_argument("--pin", action="store_true", help="each core sends for one port")
        cores.add_argument(
            "--core_mask", nargs="+", type=_arguments.any_number, metavar="MASK", help="the cores that send"
        )
        add("--sync", action="store_true", help="start the ports at the same time")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        client = session.client
        places = _arguments.chosen_places(session, options)
        if _arguments.asks_help(options):
            with contextlib.suppress(CommandError):  # a profile that explains itself ends there
                _loaded(options, places[0])
            return Answer("")
        with _profile.noted_warnings():
            profiles = {place: _loaded(options, place) for place in places}
        running = _within(client, places, "active")
        if running and not options.force:
            raise CommandError(f"start: {_words(running)} sends already; `stop` it, or give --force")
        if running:
            client.stop_stl(running)
        known = [place for place in places if _is_known(client, place)]
        if known:
            client.remove_all_streams(known)
        for place, profile in profiles.items():
            client.add_streams(profile.get_streams(), ports=[place])
        if options.dry:
            rates = client.validate(places)
            lines = [f"port {place}: {_rate(found['rate'])}" for place, found in rates.items()]
            fields = {str(place): found["rate"] for place, found in rates.items()}
            return Answer("\n".join([*lines, "Nothing was sent."]), {"rates": fields})
        mask = client.CORE_MASK_PIN if options.pin else options.core_mask
        client.start_stl(
            *(places, options.mult, options.force, options.duration, options.total, mask, options.sync)
        )
        return done(f"Starting traffic on port(s) {_words(places)}:", ports=places, multiplier=options.mult)


class Stop(ConsoleCommand):
    """`stop`, of streams."""

    name = "stop"
    summary = "stop what sends"
    group = "Stateless"
    example = "stop -p 0 --remove"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.places(parser, all_flag=True)
        parser.add_argument("--remove", action="store_true", help="remove the streams, too")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        client = session.client
        active = _named(client.get_profiles_with_state("active"))
        pushing = [str(port) for port in client.get_acquired_ports() if client.get_port(port).is_pushing]
        places = _arguments.chosen_places(session, options, [*active, *pushing])
        running = [*_within(client, places, "active"), *(one for one in pushing if one in places)]
        if running:
            client.stop_stl(running)
        loaded = _within(client, places, "streams") if options.remove else []
        if loaded:
            client.remove_all_streams(loaded)
        fields = {"stopped": running, "removed": loaded}
        if not running and not loaded:
            return Answer("no active ports" if not places else f"no active traffic on ports {places}", fields)
        return done(f"Stopping traffic on port(s) {_words(running or loaded)}:", **fields)


class Update(ConsoleCommand):
    """`update`, of streams."""

    name = "update"
    summary = "change the rate of what sends"
    group = "Stateless"
    example = "update -p 0 -m 20kpps"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.places(parser)
        _arguments.multiplier(parser)
        add = parser.add_argument
        add("-t", "--total", action="store_true", help="-m is the rate of all ports together")
        add("--force", action="store_true", help="more than the line rate may be asked for")
        _arguments.stream_ids(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        client = session.client
        places = _arguments.chosen_places(session, options, _named(client.get_profiles_with_state("active")))
        if options.ids:
            client.update_streams(_one(places), options.mult, options.force, options.ids)
        else:
            running = _needed(client, places, "active", "sends")
            client.update_stl(running, options.mult, options.total, options.force)
        return done(f"Updating traffic on port(s) {_words(places)}:", ports=places, multiplier=options.mult)


class Pause(ConsoleCommand):
    """`pause`."""

    name = "pause"
    summary = "hold what sends"
    group = "Stateless"
    example = "pause -p 0"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.places(parser)
        _arguments.stream_ids(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        client = session.client
        sending = _named(client.get_profiles_with_state("transmitting"))
        places = _arguments.chosen_places(session, options, sending)
        if options.ids:
            client.pause_streams(_one(places), options.ids)
        else:
            client.pause(_needed(client, places, "transmitting", "sends"))
        return done(f"Pausing traffic on port(s) {_words(places)}:", ports=places)


class Resume(ConsoleCommand):
    """`resume`."""

    name = "resume"
    summary = "let paused traffic go on"
    group = "Stateless"
    example = "resume -p 0"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.places(parser)
        _arguments.stream_ids(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        client = session.client
        paused = _named(client.get_profiles_with_state("paused"))
        places = _arguments.chosen_places(session, options, None if options.ids else paused)
        if options.ids:
            client.resume_streams(_one(places), options.ids)
        else:
            client.resume(_needed(client, places, "paused", "is paused"))
        return done(f"Resuming traffic on port(s) {_words(places)}:", ports=places)


class Push(ConsoleCommand):
    """`push`."""

    name = "push"
    summary = "send a capture file"
    group = "Stateless"
    example = "push -f traffic.pcap -p 0 --force"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("-r", "--remote", action="store_true", help="the file is one of the server's")
        _arguments.ports_or_all(parser)
        add("-c", "--count", type=int, default=1, metavar="N", help="how often (1; 0 is forever)")
        _arguments.duration(parser, "-d", -1.0, "stop after so long")
        add("-i", "--ipg", dest="ipg_usec", type=float, metavar="US", help="time between two packets")
        add("--min-ipg", dest="min_ipg_usec", type=float, metavar="US", help="no gap is shorter")
        add("-s", "--speedup", type=float, default=1.0, metavar="FACTOR", help="so much faster (1)")
        add("--force", action="store_true", help="stop what runs, and send large files")
        add("--dual", action="store_true", help="the other direction leaves the other port of the pair")
        add("--src-mac-pcap", action="store_true", help="keep the file's source MAC addresses")
        add("--dst-mac-pcap", action="store_true", help="keep the file's destination MAC addresses")
        _arguments.file(parser, "the capture: pcap, pcapng, or ERF")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        ports = _arguments.owned(session, _arguments.chosen(session, options))
        push = session.client.push_remote if options.remote else session.client.push_pcap
        if not options.remote and (why := no_file(options.file)):
            hint = "" if Path(options.file).exists() else "; -r means a file of the server's"
            raise bad_input(f"push -f {options.file}: {why}{hint}")
        push(
            options.file,
            ports=ports,
            ipg_usec=options.ipg_usec,
            speedup=options.speedup,
            count=options.count,
            duration=options.duration,
            force=options.force,
            is_dual=options.dual,
            min_ipg_usec=options.min_ipg_usec,
            src_mac_pcap=options.src_mac_pcap,
            dst_mac_pcap=options.dst_mac_pcap,
        )
        word = "remote" if options.remote else "local"
        return done(f"Pushing {word} PCAP on port(s) {ports}:", ports=ports, file=options.file)


class Wait(ConsoleCommand):
    """`wait`."""

    name = "wait"
    summary = "wait until what runs for a time has ended"
    group = "Console"
    example = "wait -t 30"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.duration(parser, "-t", -1.0, "for so long at most")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        timeout_s = None if options.duration < 0 else options.duration
        session.client.wait_on_traffic(timeout=timeout_s)
        return done("Waiting for the traffic to end:")


def _loaded(options: argparse.Namespace, place: str) -> Any:
    """Return the profile for one place."""
    from allosaur import PortProfileID

    port, words = PortProfileID(place).port_id, _arguments.old_tunables(options.tunables)
    path = Path(_shipped.located(options.file))
    return _profile.load(path, port % 2, port, {"tunables": words} if words else {})  # type: ignore[dict-item]


def _named(places: Sequence[PortProfileID]) -> list[str]:
    return [str(one) for one in places]


def _within(client: STLClient, places: Sequence[str], state: str) -> list[str]:
    """Return those in a state that `places` mean."""
    from allosaur import PortProfileID

    wanted = [PortProfileID(place) for place in places]
    return [
        str(one)
        for one in client.get_profiles_with_state(state)
        if any(one.port_id == other.port_id and other.profile_id in (one.profile_id, "*") for other in wanted)
    ]


def _needed(client: STLClient, places: Sequence[str], state: str, verb: str) -> list[str]:
    found = _within(client, places, state)
    if not found:
        raise CommandError(f"no port {verb}" if not places else f"none of {_words(places)} {verb}")
    return found


def _one(places: Sequence[str]) -> str:
    if len(places) != 1:
        raise bad_input("-i: give one port with -p, whose streams are meant")
    return places[0]


def _is_known(client: STLClient, place: str) -> bool:
    from allosaur import PortProfileID

    one = PortProfileID(place)
    return one.profile_id in client.get_port(one.port_id).profiles


def _words(places: Sequence[str]) -> str:
    return f"[{', '.join(place if '.' in place else f'{place}._' for place in places)}]"


def _rate(rate: dict[str, Any]) -> str:
    return f"{_format.rate(rate['max_pps'], 'pps')}, {_format.rate(rate['max_bps_l2'], 'bps')}"
