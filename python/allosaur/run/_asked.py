"""A profile of a run, as the command line names it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from allosaur.cli._options import Tunable


@dataclass(frozen=True)
class Asked:
    """A profile of a run, as the command line names it."""

    options: argparse.Namespace
    path: Path
    name: str
    ports: Sequence[int] | None
    """Those that it should have, where somebody said so, or where several share a server."""
    multiplier: str
    tunables: Sequence[Mapping[str, Tunable]] = field(default_factory=tuple)
    is_one_of_several: bool = False
    has_own_ports: bool = False
    """Whether the user named ports for just this one."""
