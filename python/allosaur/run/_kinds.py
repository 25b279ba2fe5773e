"""The kinds of traffic that a run may have: one row for each, in the order in which a profile is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allosaur.cli import _shipped
from allosaur.cli._profile_kind import is_emulation, is_stateful
from allosaur.run._load import Load


@dataclass(frozen=True)
class Kind:
    """A kind of traffic: its word in documents, which profiles are such, and how to read one."""

    mode: str
    fits: Callable[[Path], bool]
    load: Callable[[], type[Load[Any]]]
    of_pair: Callable[[int], list[int]] = lambda port: [port, port + 1]
    """Which of a pair of ports are its own, by the first of them."""
    has_ports: bool = True
    """Whether the user says which ports it has; else its profile does."""


def _emulation() -> type[Load[Any]]:
    from allosaur.run.emulation._load import EmulationLoad

    return EmulationLoad


def _flows() -> type[Load[Any]]:
    from allosaur.run.flows._load import FlowLoad

    return FlowLoad


def _streams() -> type[Load[Any]]:
    from allosaur.run.streams._load import StreamLoad

    return StreamLoad


KINDS = (
    Kind("emulation", is_emulation, _emulation, has_ports=False),
    Kind("stateful", is_stateful, _flows),
    Kind("stateless", lambda path: True, _streams, of_pair=lambda port: [port]),
)


def kind_of(path: Path, mode: str | None = None) -> Kind:
    """Return the kind of a profile, or that of a mode.

    Raises :class:`CommandError` for a file that is not there, or no profile at all.
    """
    _shipped.check(path)
    return next(kind for kind in KINDS if (kind.fits(path) if mode is None else kind.mode == mode))
