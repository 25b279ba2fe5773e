"""Servers with emulated clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from allosaur.server import LocalServer


@pytest.fixture
def emulating() -> Iterator[LocalServer]:
    """A server with two ports in memory that are linked, and emulated clients."""
    with LocalServer(emu=True) as server:
        yield server


@pytest.fixture
def door(emulating: LocalServer, doors: Any) -> Iterator[Any]:
    """Requests to its emulated clients."""
    with doors.Door(emulating.emu_port) as door:
        yield door
