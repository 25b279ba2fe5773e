"""Remedies in the words of the place where the user is.

A message of the client or of the server names a method, or an argument of one; whoever types commands is told
the command. A test reads every message of the client, and looks whether it is told well here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Remedy:
    """What a message says, and what it says to whoever types commands."""

    said: str
    """A regular expression."""
    console: str
    command_line: str


REMEDIES = (
    Remedy(
        r"acquire it by force \(force=True\) when that client is gone",
        "take it away by force when that client is gone",
        "give --force when that client is gone",
    ),
    Remedy(r"call connect\(\) first", "type `connect` first", "start the command again"),
    Remedy(r"connect\(\) again", "type `connect` again", "start the command again"),
    Remedy(r"call disconnect\(\) first", "type `disconnect` first", "start the command again"),
    Remedy(
        r"call acquire\(\) or reset\(\) first",
        "type `acquire` or `reset` first",
        "start the command again, with --force where somebody else has them",
    ),
    Remedy(
        r"call set_service_mode\((?P<ports>.*?)\) first, or do it in a block of "
        r"'with client\.service_mode\(.*?\):'",
        "type `service -p {ports}` first",
        "type `service -p {ports}` in `allosaur console` first",
    ),
    Remedy(
        r"call stop\(\) first, or give force=True",
        "type `stop` first, or give --force",
        "type `allosaur stop` first, or give --force",
    ),
    Remedy(
        r"call stop\(\) and wait_on_traffic\(\) first",
        "type `stop` first, and wait until it has ended",
        "type `allosaur stop` first",
    ),
    Remedy(r"call start\(\) first", "type `start` first", "type `allosaur start` first"),
    Remedy(
        r"call add_streams\(\) first",
        "type `start -f PROFILE` first",
        "type `allosaur start PROFILE` first",
    ),
    Remedy(
        r"call load_profile\(\) first",
        "type `start -f PROFILE` first",
        "type `allosaur start PROFILE` first",
    ),
    Remedy(
        r"call set_l3_mode\(\) first(?:, or give src_ip)?",
        "type `l3 -p PORT --src ADDRESS --dst GATEWAY` first",
        "give --source ADDRESS and --gateway ADDRESS",
    ),
    Remedy(
        r"call set_l2_mode\(\) or resolve\(\) first, or give dst_mac",
        "type `l2` or `arp` first",
        "type `allosaur arp` first",
    ),
    Remedy(r"call resolve\(\) first", "type `arp` first", "type `allosaur arp` first"),
    Remedy(
        r"call topo_clear\(\) first",
        "type `topo clear` first",
        "type `topo clear` in `allosaur console` first",
    ),
    Remedy(
        r"have the server read it with push_remote\(\)(?P<more>, or give force=True)?",
        "have the server read it with `push -r`{more}",
        "have the server read it with --remote{more}",
    ),
    Remedy(
        r"see set_l3_mode\(\), conf_ipv6\(\) and set_service_mode\(\)",
        "see `l3`, `ipv6` and `service`",
        "see `l3`, `ipv6` and `service` of `allosaur console`",
    ),
    Remedy(
        r"switch it on with\s+'service'",
        "switch it on with `service`",
        "switch it on with `service` in `allosaur console`",
    ),
    Remedy(r"Lower 'mul'", "Lower -m", "Lower -m"),
    Remedy(r"(?:\(use 'force' argument to override\))", "(--force overrides)", "(--force overrides)"),
    Remedy(
        r"\b(?P<verb>use|with|give) (?:'force'|force=True|force\b(?! ))", "{verb} --force", "{verb} --force"
    ),
)
_in_console: ContextVar[bool] = ContextVar("_in_console", default=False)


@contextlib.contextmanager
def of_console() -> Iterator[None]:
    """Have remedies in the words of the console inside the block."""
    before = _in_console.set(True)
    try:
        yield
    finally:
        _in_console.reset(before)


def command(console: str, command_line: str) -> str:
    """Return a command as it is typed here."""
    return console if _in_console.get() else f"allosaur {command_line}"


def told(message: str) -> str:
    """Return a message of the client or the server as it is told here."""
    for remedy in REMEDIES:
        message = re.sub(remedy.said, lambda found, one=remedy: _filled(one, found), message)  # type: ignore[misc]
    return message


def _filled(remedy: Remedy, found: re.Match[str]) -> str:
    values = {name: value or "" for name, value in found.groupdict().items()}
    if "ports" in values:
        # Lists of Python are written with brackets; the console takes numbers.
        values["ports"] = " ".join(re.findall(r"\d+", values["ports"])) or "PORT"
    if values.get("more"):
        values["more"] = ", or give --force"
    return (remedy.console if _in_console.get() else remedy.command_line).format(**values)
