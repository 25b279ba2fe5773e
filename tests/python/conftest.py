"""Fixtures of the Python client's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from allosaur import STLClient, STLError
from allosaur.server import LocalServer, find_binary
from allosaur.testing import MockTransport


@pytest.fixture
def transport() -> MockTransport:
    """A mock server with two ports."""
    return MockTransport()


@pytest.fixture
def client(transport: MockTransport) -> Iterator[STLClient]:
    """A client that is connected to the mock."""
    with STLClient(username="alice", transport=transport) as connected:
        yield connected


@pytest.fixture
def binary() -> Path:
    """The server's binary; tests that need it are skipped without it."""
    try:
        return find_binary()
    except STLError as error:
        pytest.skip(f"no server binary: {error}")


@pytest.fixture
def live_server(binary: Path, fits_the_schema: None) -> Iterator[LocalServer]:
    """A real server with two linked in-memory ports."""
    with LocalServer(binary=binary, options=["--captures-folder", "/"]) as running:
        yield running
