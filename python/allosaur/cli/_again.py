"""The command line that does a run again: all options that change what it does, as a shell takes them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from allosaur.cli._options import FOREVER, plain_seconds

_ALWAYS = ("multiplier", "duration")
"""Told even where nobody gave them: what a run did is read from its command."""
_NEVER = ("profiles", "profile", "report", "json", "out", "junit", "debug", "quiet", "no_color", "help")
"""What a run prints and writes is not what it does."""


def command(options: argparse.Namespace) -> str:
    """Return the command line for the options of `allosaur run`."""
    profiles = getattr(options, "profiles", None) or [options.profile]
    usual = options.all_commands.parse_args([options.command, *profiles])
    words = ["allosaur", options.command, *profiles]
    for action in options.parser._actions:
        name, value = action.dest, getattr(options, action.dest, None)
        is_told = name in _ALWAYS or (name == "server" and not options.local)
        if name not in _NEVER and (is_told or value != getattr(usual, name)):
            words += _words(action, value)
        if name not in _NEVER:
            words += _of_loads(action, getattr(options, "of_load", {}))
    return shlex.join(words)


def _of_loads(action: argparse.Action, found: Mapping[tuple[str, str], Any]) -> Iterator[str]:
    """Return the words of an option for single loads: `-m http=100`."""
    for (option, load), value in found.items():
        if option == action.dest:
            sign = ":" if isinstance(action.default, list) else "="
            name, *texts = _words(action, value)
            yield from (word for text in texts if text != name for word in (name, f"{load}{sign}{text}"))


def _words(action: argparse.Action, value: Any) -> list[str]:
    name = action.option_strings[0]
    if action.nargs == 0:
        return [name]
    if isinstance(value, float):
        return [name, "forever" if value == FOREVER else plain_seconds(value)]
    if not isinstance(value, list):
        return [name, str(value)]
    if action.nargs == "+":
        return [name, *value]
    if value and isinstance(value[0], dict):
        texts = [",".join(f"{key}={one[key]}" for key in one) for one in value]
        return [word for text in texts for word in (name, text)]
    return [name, ",".join(map(str, value))]
