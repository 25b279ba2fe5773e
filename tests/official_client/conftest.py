"""The environment of TRex's official client, for the tests of this folder."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from allosaur.server import LocalServer

ROOT = Path(__file__).resolve().parent.parent.parent
SKIP_VARIABLE = "ALLOSAUR_SKIP_OFFICIAL_CLIENT"


@pytest.fixture(scope="session")
def client_python() -> str:
    """The Python of the official client's own environment, made when it is not there yet."""
    if os.environ.get(SKIP_VARIABLE):
        pytest.skip(f"{SKIP_VARIABLE} is set")
    made = subprocess.run(
        [str(ROOT / "scripts" / "official-client.sh")], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.fail(
            "cannot make the environment of TRex's official client (it needs the package index once); "
            f"set {SKIP_VARIABLE}=1 to go without these tests.\n{made.stderr}"
        )
    return made.stdout.splitlines()[-1]


@pytest.fixture(scope="session")
def client_environment() -> dict[str, str]:
    """The variables of the client's process. Our package has the same import names: it must not be found."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="session")
def run_on(client_python: str, client_environment: dict[str, str]) -> Any:
    """Run one scenario of session.py against a server, and return what it printed."""

    def run_scenario(server: LocalServer, name: str, *arguments: str) -> Any:
        script = Path(__file__).resolve().parent / "session.py"
        command = [client_python, "-W", "ignore", str(script), name]
        command += [server.host, str(server.rpc_port), str(server.pub_port), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=110, check=False, env=client_environment
        )
        assert done.returncode == 0, f"the official client failed:\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    return run_scenario


@pytest.fixture(scope="session")
def official(run_on: Any) -> Any:
    """Run one scenario of session.py against a fresh server of two linked ports; give what it printed."""

    def run_scenario(name: str, *arguments: str) -> Any:
        with LocalServer(ports=["memory", "memory"], options=["--captures-folder", "/"]) as server:
            return run_on(server, name, *arguments)

    return run_scenario
