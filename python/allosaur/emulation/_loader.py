"""Profiles of emulated clients from files: Python whose `register().get_profile` takes words for argparse."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._errors import STLProfileError
from ..streams._loader import as_list, located_module, registered

HELP = ("-h", "--help")


def words(tunables: Sequence[str] | dict[str, Any] | None) -> list[str]:
    """Tunables as words of a command line: those already, or names with values."""
    if tunables is None:
        return []
    return as_list(tunables) if isinstance(tunables, dict) else [str(word) for word in tunables]


def run(path: Path, tunables: Sequence[str]) -> Any:
    """What the ``get_profile`` of a Python file gives. Raises ``STLProfileError``."""
    if path.suffix != ".py":
        raise STLProfileError(f"profile {path}: give a Python file (.py) with register()")
    with located_module(path) as module, _without_collector():
        return registered(path, module, "get_profile")(list(tunables))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Profiles make clients by the hundred thousand, and all stay: looking for garbage is half the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def show_help(path: Path) -> None:
    """Let a profile print which tunables it has."""
    with located_module(path) as module:
        try:
            registered(path, module, "get_profile")(["--help"])
        except SystemExit:
            return


def no_profile(path: Path, got: object) -> STLProfileError:
    """The error for a ``get_profile`` that gives something else."""
    what = "nothing" if got is None else f"a {type(got).__name__}"
    return STLProfileError(f"profile {path}: get_profile() returns {what}: let it return an EMUProfile")
