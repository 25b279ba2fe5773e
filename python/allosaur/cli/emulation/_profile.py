"""Profiles of emulated clients: read for a command, and what is in one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from allosaur.cli import _format, _profile, _shipped
from allosaur.cli._answer import Answer
from allosaur.cli._options import Tunable

if TYPE_CHECKING:
    from allosaur import EMUProfile


def load(path: Path, tunables: Sequence[Mapping[str, Tunable]]) -> EMUProfile:
    """Read a profile. Raises :class:`CommandError` with the line that is wrong."""
    _shipped.check(path)
    from allosaur import EMUProfile, STLError

    try:
        # What a profile prints must not mix with our own output, which may be JSON.
        with contextlib.redirect_stdout(sys.stderr):
            return EMUProfile.load(path, _profile.merged(tunables))
    except STLError as error:
        raise _profile.wrong(path, error) from error


def said(profile: EMUProfile) -> Answer:
    """Return what is emulated now."""
    count = sum(len(ns.c_map) for ns in profile.ns_list)
    text = f"Emulating {counted(count, 'client')} in {counted(len(profile.ns_list), 'namespace')}."
    return Answer(text, {"clients": count, "namespaces": len(profile.ns_list)})


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 client`, `2,000 clients`."""
    return f"{_format.count(count)} {noun}{'' if count == 1 else 's'}"
