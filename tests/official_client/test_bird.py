"""TRex's PyBird client, unchanged, with a server's BIRD."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from allosaur.server import LocalServer

pytestmark = pytest.mark.usefixtures("networks_work", "bird_is_here")


def run(client_python: str, environment: dict[str, str], server: LocalServer) -> Any:
    script = Path(__file__).resolve().parent / "bird_session.py"
    command = [client_python, "-W", "ignore", str(script), server.host, str(server.bird_port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, env=environment)
    assert done.returncode == 0, f"the official client failed:\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


def test_pybird_configures_bird(client_python: str, client_environment: dict[str, str]) -> None:
    with LocalServer(ports=["memory", "memory"], options=["--bird-port", "0"]) as server:
        seen = run(client_python, client_environment, server)
    assert seen["connected"] == "Connection established"
    assert "protocol device" in seen["first"]
    assert seen["is_number"]
    assert "another client has BIRD" in seen["second"]
    assert "force=True" in seen["second"]
    assert seen["configured"] == "Configured successfully"
    assert seen["is_as_sent"]
    assert seen["again"] == "Already configured"
    lines = [line.split()[:2] for line in seen["protocols"].splitlines()]
    assert lines[0] == ["Name", "Proto"]
    assert ["my_bgp1", "BGP"] in lines
    assert "bird.conf:3:" in seen["wrong"]
    assert "syntax error" in seen["wrong"]
    assert seen["kept"]
    assert seen["emptied"] == "Configured successfully"
    assert seen["known"] == "Found configuration in cache. Configured successfully"
    assert seen["forced"]
    assert "'handler' is not that of the client" in seen["lost"]
    assert seen["released"] == "Client released successfully"
    assert "acquire it first" in seen["nobody"]
