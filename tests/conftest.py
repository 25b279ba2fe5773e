"""Fixtures for all black-box tests: a server of the real binary, and the shared test data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from allosaur.server import LocalServer

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"


@pytest.fixture
def server() -> Iterator[LocalServer]:
    """A server with two in-memory ports that are linked to each other, on free TCP ports of loopback."""
    with LocalServer(ports=["memory", "memory"], cores=1) as running:
        yield running


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of test data that lies beside the checkout; tests that need it are skipped without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no test data at {SHARED_DATA}: put the shared data folder beside the checkout")
    return SHARED_DATA
