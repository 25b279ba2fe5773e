"""`allosaur status`: what a server is, who owns its ports, and what runs since when."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from allosaur.cli import _answer, _arguments, _emulated, _format
from allosaur.cli._access import remote_client_of_any_mode
from allosaur.cli._answer import Answer
from allosaur.cli._command import Command
from allosaur.cli._errors import explained
from allosaur.cli._modes import MODES, PORT_STATES

if TYPE_CHECKING:
    from allosaur import STLClient

_PHASES = ("empty", "loaded", "starting", "starting", "runs", "closing flows", "being removed")
_CLOCK = "%Y-%m-%d %H:%M:%S"


class Status(Command):
    """`allosaur status`."""

    name = "status"
    summary = "say what a server is, who owns its ports, and what runs since when"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.server(parser, force=None)

    def run(self, options: argparse.Namespace) -> int:
        with remote_client_of_any_mode(options) as client, explained("cannot read what the server does"):
            version = client.get_server_version()
            emulated = _emulated.read(client)
            status = client.get_status() if _tells(client) else _of_ports(client)
            drivers = {number: str(port.info.get("description", "")) for number, port in client.ports.items()}
            down = {
                number: port.link_cause or "no link"
                for number, port in client.ports.items()
                if not port.is_link_up
            }
        answer = _answer_of(options, version, status, drivers, down)
        if emulated is not None and (count := _emulated.count(emulated)):
            said = f"Emulated: {_emulated.said(emulated)} (`allosaur stats`)"
            answer = Answer(f"{answer.text}\n\n{said}", {**answer.fields, "emulated_clients": count})
        return _answer.give(options, answer)


def _tells(client: STLClient) -> bool:
    return "get_status" in client.get_server_supported_cmds()


def _of_ports(client: STLClient) -> dict[str, Any]:
    """Return what can be known of a server of TRex's: owners and states, not since when."""
    ports: list[dict[str, Any]] = []
    for number in client.ports:
        client.get_port_attr(number)  # reads it anew
        port = client.ports[number]
        user = port.status.get("owner")
        owner = {"user": user, "session_id": None, "lease_s": None} if user else None
        mode = client.get_mode()
        ports.append({"port_id": number, "mode": mode, "owner": owner, "state": port.state, "profiles": []})
    return {"mode": client.get_mode(), "uptime_s": None, "ports": ports, "profiles": []}


def _answer_of(
    options: argparse.Namespace,
    version: Mapping[str, Any],
    status: Mapping[str, Any],
    drivers: Mapping[int, str],
    down: Mapping[int, str],
) -> Answer:
    modes = status.get("modes", [status["mode"]])
    has_both = len(modes) > 1
    now = time.time()
    uptime_s = status["uptime_s"]
    up = "" if uptime_s is None else f", up since {_clock(now - uptime_s)}"
    mode = "both modes" if has_both else MODES[modes[0]]
    head = f"{options.server}: {version.get('version', '?')}, {mode}, {len(status['ports'])} ports{up}"
    runs = [
        row for port in status["ports"] for row in _runs(f"port {port['port_id']}", port["profiles"], now)
    ]
    runs += _runs("flows", status["profiles"], now)
    text = [
        head,
        _format.table(
            ["port", "kind", *(["mode"] if has_both else []), "state", "owner"],
            [_row(p, drivers, down, has_both) for p in status["ports"]],
        ),
    ]
    if runs:
        text.append(_format.table(["what", "profile", "state", "multiplier", "since", "for"], runs))
    return Answer(
        "\n\n".join(text),
        {
            "version": version.get("version"),
            "mode": "both" if has_both else mode,
            "started": None if uptime_s is None else _clock(now - uptime_s),
            "uptime_s": uptime_s,
            "ports": [
                {
                    **port,
                    "mode": MODES[port["mode"]],
                    "kind": drivers[port["port_id"]],
                    "link_down": down.get(port["port_id"]),
                    "profiles": _with_start(port["profiles"], now),
                }
                for port in status["ports"]
            ],
            "profiles": _with_start(status["profiles"], now),
        },
    )


def _row(
    port: Mapping[str, Any], drivers: Mapping[int, str], down: Mapping[int, str], has_both: bool
) -> list[str]:
    owner = port["owner"]
    words = "nobody"
    if owner is not None:
        session = "" if owner["session_id"] is None else f" (session {owner['session_id']})"
        words = f"{owner['user']}{session}"
    state = PORT_STATES.get(port["state"], port["state"])
    if cause := down.get(port["port_id"]):
        state += f", link down ({cause})"
    mode = [MODES[port["mode"]]] if has_both else []
    return [str(port["port_id"]), drivers.get(port["port_id"], ""), *mode, state, words]


def _runs(what: str, profiles: list[dict[str, Any]], now: float) -> list[list[str]]:
    rows = []
    for profile in profiles:
        run, state = profile["run"], profile["state"]
        word = _PHASES[state] if isinstance(state, int) else PORT_STATES.get(state, state)
        if run is None:
            rows.append([what, profile["profile_id"], word, "", "", ""])
            continue
        duration_s = run["duration_s"]
        how_long = "until stopped" if duration_s is None else f"{duration_s:g} s"
        since = _clock(now - run["running_s"])
        rows.append([what, profile["profile_id"], word, f"{run['multiplier']:g}", since, how_long])
    return rows


def _with_start(profiles: list[dict[str, Any]], now: float) -> list[dict[str, Any]]:
    """Return profiles with the time of day at which they were started."""
    return [
        profile
        if profile["run"] is None
        else {**profile, "run": {"since": _clock(now - profile["run"]["running_s"]), **profile["run"]}}
        for profile in profiles
    ]


def _clock(seconds: float) -> str:
    return time.strftime(_CLOCK, time.localtime(seconds))
