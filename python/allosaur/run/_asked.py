"""A profile of a run, as the command line names it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Asked:
    """A profile of a run, as the command line names it."""

    options: argparse.Namespace
    path: Path
    name: str
    ports: Sequence[int] | None
    """Those that it should have, where somebody said so, or where several share a server."""
    multiplier: str
    is_one_of_several: bool = False
