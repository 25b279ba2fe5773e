"""Fixtures for tests on ports beyond memory."""

from __future__ import annotations

import subprocess

import pytest
from allosaur.server import find_binary


@pytest.fixture(scope="session")
def dpdk() -> None:
    """Skip where the server was built without DPDK; where it was built with it, it must start."""
    command = [
        str(find_binary()),
        "bench",
        "--case",
        "constant",
        "--seconds",
        "0.01",
        "--ports",
        "vdev:net_null",
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "this server was built without" in result.stderr:
        pytest.skip("the server was built without DPDK: install libdpdk-dev and run `make install`")
    assert result.returncode == 0, result.stderr
