"""TRex's EMU client, unchanged, drives our emulated clients."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur.server import LocalServer

Session = Callable[[str], Any]


@pytest.fixture(scope="module")
def session(client_python: str, client_environment: dict[str, str]) -> Any:
    """Run a scenario of emulation_session.py on a server of its own, and give what it printed."""

    def run(name: str) -> Any:
        script = Path(__file__).resolve().parent / "emulation_session.py"
        with LocalServer(emu=True) as server:
            command = [client_python, "-W", "ignore", str(script), name, server.host, str(server.emu_port)]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=110, check=False, env=client_environment
            )
        assert done.returncode == 0, f"the official client failed:\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_a_profile_is_loaded_used_and_removed(session: Session) -> None:
    seen = session("a_profile")
    assert [address for address, state in seen["cache"] if state == "Complete"] == ["0a010001"]
    assert seen["gateway"] == {"resolve": True, "rmac": "00:00:00:70:00:01"}
    assert seen == {
        "ports": [0, 1],
        "clients": [600, 600],
        "plugins": ["arp"],
        "address": "10.1.128.1",
        "gateway": seen["gateway"],
        "replied": True,
        "cache": seen["cache"],
        "sent": True,
        "cleared": 0,
        "left": 0,
    }


def test_namespaces_and_clients_come_and_go_one_by_one(session: Session) -> None:
    assert session("piece_by_piece") == {
        "refused": [True, True, True],
        "left": 2,
        "plugins": "arp",
        "mode": "emulation",
        "namespaces": 0,
    }
