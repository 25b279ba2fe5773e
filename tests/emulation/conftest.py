"""Servers with emulated clients."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur.server import LocalServer


@pytest.fixture
def emulating() -> Iterator[LocalServer]:
    """A server with two ports in memory that are linked, and emulated clients."""
    with LocalServer(emu=True) as server:
        yield server


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory that all users may enter: dnsmasq waits for its disk at each lease."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def door(emulating: LocalServer, doors: Any) -> Iterator[Any]:
    """Requests to its emulated clients."""
    with doors.Door(emulating.emu_port) as door:
        yield door
