"""The actions of `allosaur routes`, one object each, in the order in which they are listed."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format, _live, _options
from allosaur.cli._action import Action
from allosaur.cli._answer import Answer
from allosaur.cli._errors import CommandError, bad_input
from allosaur.cli.nodes import _find

if TYPE_CHECKING:
    from allosaur import STLClient

_INTERVAL_S = 0.1
_COLUMNS = ("speaker", "peer", "AS", "state", "announced", "withdrawn", "queued", "sent", "acknowledged")


class RoutesAction(Action["STLClient"]):
    """What follows `allosaur routes`."""


class Add(RoutesAction):
    """`allosaur routes add`."""

    name = "add"
    summary = "make a BGP speaker, with a session to a peer"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        _speaker(parser)
        add("--asn", type=_options.whole_number, required=True, metavar="AS", help="its AS number")
        add(
            "--peer",
            type=_options.address,
            required=True,
            metavar="ADDRESS",
            help="the router that it speaks to",
        )
        add(
            "--peer-asn",
            type=_options.whole_number,
            metavar="AS",
            help="the AS number of that (default: any)",
        )
        add(
            "--node",
            type=_find.name,
            metavar="NODE",
            help="the node that it is on: a MAC address, an IP address or a namespace (default: where the "
            "server is)",
        )
        add(
            "--address",
            type=_options.address,
            metavar="ADDRESS",
            help="where its connections come from (default: the node's)",
        )
        add(
            "--router-id",
            type=_options.address,
            metavar="ADDRESS",
            help="its BGP identifier (default: its IPv4 address)",
        )
        add(
            "--hold-time",
            type=_options.number,
            default=90,
            metavar="SECONDS",
            help="the hold time that it offers, 0 for none (default: 90)",
        )
        add("--md5", metavar="KEY", help="the key by which segments are signed (TCP-MD5)")
        add("--passive", action="store_true", help="let the peer open the connection")
        add("--next-hop-ipv4", type=_options.address, metavar="ADDRESS", help="the next hop of IPv4 routes")
        add("--next-hop-ipv6", type=_options.address, metavar="ADDRESS", help="the next hop of IPv6 routes")

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        place: dict[str, Any] = {}
        ipv4 = options.address if options.address and ":" not in options.address else None
        if options.node is not None:
            (node,) = _find.named(client, [options.node], None)
            place = {"port": node.port, "node": node.mac}
            ipv4 = ipv4 or node.info["ipv4"].get("src")
        router_id = options.router_id or ipv4
        if router_id is None:
            raise bad_input("--router-id: the speaker has no IPv4 address to take it from: give one")
        client.routes_add_speaker(
            options.speaker,
            options.asn,
            router_id,
            address=options.address,
            hold_time_s=options.hold_time,
            **place,
        )
        fields = {
            "peer_asn": options.peer_asn,
            "md5": options.md5,
            "next_hop_ipv4": options.next_hop_ipv4,
            "next_hop_ipv6": options.next_hop_ipv6,
        }
        given = {name: value for name, value in fields.items() if value is not None}
        try:
            client.routes_add_session(options.speaker, options.peer, passive=options.passive, **given)
        except BaseException:
            client.routes_remove(options.speaker)
            raise
        text = f"Speaker {options.speaker} of AS {options.asn} has a session with {options.peer}."
        return Answer(text, {"speaker": options.speaker, "peer": options.peer})


class Announce(RoutesAction):
    """`allosaur routes announce`."""

    name = "announce"
    summary = "announce a table of routes on all sessions of a speaker"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        _speaker(parser)
        _table(parser)
        add("--first", metavar="PREFIX", help="prefixes one behind the other from this one on")
        add("--seed", type=_options.number, metavar="N", help="routes like the internet's, made of a seed")
        add("--mrt", metavar="FILE", help="routes of an MRT file on the server's machine (TABLE_DUMP_V2)")
        add("--count", type=_options.whole_number, metavar="N", help="how many routes")
        add("--ipv6", action="store_true", help="with --seed or --mrt: routes of IPv6")
        _rate(parser)
        _wait(parser)

    def check(self, options: argparse.Namespace) -> None:
        sources = [f"--{name}" for name in ("first", "seed", "mrt") if getattr(options, name) is not None]
        if len(sources) != 1:
            told = " and ".join(sources) or "none"
            raise bad_input(f"routes announce: give one of --first, --seed and --mrt, not {told}")
        if options.count is None and options.mrt is None:
            raise bad_input(f"{sources[0]}: give --count, too: how many routes")
        if options.first is not None and options.ipv6:
            raise bad_input("--ipv6 is for --seed and --mrt: --first says its family by itself")

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        family = "ipv6" if options.ipv6 else "ipv4"
        if options.first is not None:
            source: dict[str, Any] = {"from": "range", "first": options.first, "count": options.count}
        elif options.seed is not None:
            source = {"from": "seed", "family": family, "count": options.count, "seed": options.seed}
        else:
            source = {"from": "mrt", "path": options.mrt, "family": family}
            if options.count is not None:
                source["count"] = options.count
        told = client.routes_announce(options.speaker, options.table, source, rate=options.rate)
        sessions = _waited(client, options)
        text = f"Announced {_format.count(told['routes'])} routes ({told['family']})"
        return Answer(f"{text}.\n{sessions_text(sessions)}", {**told, "sessions_now": sessions})


class Withdraw(RoutesAction):
    """`allosaur routes withdraw`."""

    name = "withdraw"
    summary = "withdraw a table of a speaker"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _speaker(parser)
        _table(parser)
        _rate(parser)
        _wait(parser)

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        client.routes_withdraw(options.speaker, options.table, rate=options.rate)
        sessions = _waited(client, options)
        return Answer(f"Withdrawn.\n{sessions_text(sessions)}", {"sessions_now": sessions})


class Flap(RoutesAction):
    """`allosaur routes flap`."""

    name = "flap"
    summary = "withdraw routes of a table and announce them again"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        _speaker(parser)
        _table(parser)
        add(
            "--rate",
            type=_options.whole_number,
            required=True,
            metavar="N",
            help="withdrawals, and announcements, per second",
        )
        add(
            "--times",
            type=_options.whole_number,
            default=1,
            metavar="N",
            help="how often (default: 1)",
        )
        add(
            "--share",
            type=float,
            default=100.0,
            metavar="PERCENT",
            help="of the table's routes (default: 100)",
        )
        _wait(parser)

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        client.routes_flap(
            options.speaker, options.table, options.rate, times=options.times, share=options.share
        )
        sessions = _waited(client, options)
        return Answer(f"Flapping.\n{sessions_text(sessions)}", {"sessions_now": sessions})


class Show(RoutesAction):
    """`allosaur routes show`."""

    name = "show"
    summary = "show speakers, what they announce, and their sessions"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("speaker", nargs="?", metavar="SPEAKER", help="only this one (default: all)")

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        speakers = client.routes_show(options.speaker)
        if not speakers:
            return Answer("There are no speakers.", {"speakers": []})
        tables = [
            [one["name"], table["name"], table["family"], _format.count(table["routes"])]
            for one in speakers
            for table in one["tables"]
        ]
        parts = [_sessions(speakers)]
        if tables:
            parts.append(_format.table(("speaker", "table", "family", "routes"), tables))
        return Answer("\n\n".join(parts), {"speakers": speakers})


class Remove(RoutesAction):
    """`allosaur routes remove`."""

    name = "remove"
    summary = "remove a speaker, or the session with one peer"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _speaker(parser)
        parser.add_argument(
            "--peer", type=_options.address, metavar="ADDRESS", help="only the session with this peer"
        )

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        client.routes_remove(options.speaker, options.peer)
        return Answer("Removed.", {"speaker": options.speaker, "peer": options.peer})


ACTIONS: tuple[RoutesAction, ...] = (Add(), Announce(), Withdraw(), Flap(), Show(), Remove())


def _speaker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("speaker", metavar="SPEAKER", help="the name of the speaker")


def _table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--table", default="routes", metavar="NAME", help="what the table is called (default: routes)"
    )


def _rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rate",
        type=_options.whole_number,
        metavar="N",
        help="routes per second (default: as fast as peers take them)",
    )


def _wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wait",
        type=_options.whole_number,
        metavar="SECONDS",
        help="wait until a session is established and all peers have acknowledged all, so long at most; what "
        "is not done then is exit code 1",
    )


def _waited(client: STLClient, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Wait, if that is wanted, until all is acknowledged; give the sessions."""
    (speaker,) = client.routes_show(options.speaker)
    if options.wait is None:
        return list(speaker["sessions"])
    began_s = time.monotonic()
    with _live.showing(None, _line, _line) as show:
        while not _is_done(speaker["sessions"]):
            if time.monotonic() - began_s > options.wait:
                raise CommandError(
                    f"speaker {options.speaker}: not all was acknowledged within {options.wait} s: "
                    f"{_line(speaker['sessions'])}",
                    1,
                )
            show(time.monotonic() - began_s, speaker["sessions"])
            time.sleep(_INTERVAL_S)
            (speaker,) = client.routes_show(options.speaker)
    return list(speaker["sessions"])


def _is_done(sessions: list[dict[str, Any]]) -> bool:
    return bool(sessions) and all(one["acknowledged_s"] is not None for one in sessions)


def _line(sessions: list[dict[str, Any]]) -> str:
    established = sum(one["state"] == "Established" for one in sessions)
    announced = sum(one["counters"]["announced"] for one in sessions)
    withdrawn = sum(one["counters"]["withdrawn"] for one in sessions)
    told = f"{established} of {len(sessions)} sessions established, {announced:,} routes announced"
    errors = [one["last_error"] for one in sessions if one["last_error"] and one["state"] != "Established"]
    return f"{told}, {withdrawn:,} withdrawn" + (f"; {errors[0]}" if errors else "")


def sessions_text(sessions: list[dict[str, Any]]) -> str:
    """Say in a line how the sessions are."""
    return f"{_line(sessions)}."


def _sessions(speakers: list[dict[str, Any]]) -> str:
    rows, errors = [], []
    for speaker in speakers:
        for one in speaker["sessions"]:
            counters = one["counters"]
            rows.append(
                [
                    speaker["name"],
                    one["peer"],
                    str(one["peer_asn"] or ""),
                    one["state"],
                    _format.count(counters["announced"]),
                    _format.count(counters["withdrawn"]),
                    _format.count(one["queued"]),
                    _seconds(one["sent_s"]),
                    _seconds(one["acknowledged_s"]),
                ]
            )
            if one["last_error"]:
                errors.append(f"{speaker['name']}, {one['peer']}: {one['last_error']}")
    table = _format.table(_COLUMNS, rows) if rows else "There are no sessions."
    return "\n".join([table, *errors])


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3f} s"
