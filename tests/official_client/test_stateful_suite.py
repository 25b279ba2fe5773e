"""TRex's own regression tests of stateful mode, by their calls, with TRex's official client, unchanged."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur.server import LocalServer

HERE = Path(__file__).resolve().parent
CONFIG = """\
stateful: true
ports:
- {port: memory, ip: 1.1.1.1, default_gateway: 1.1.1.2, destination_mac: "02:a1:05:00:00:01"}
- {port: memory, ip: 1.1.1.2, default_gateway: 1.1.1.1, destination_mac: "02:a1:05:00:00:00"}
"""

Run = Callable[[str], Any]


@pytest.fixture
def suite(client_python: str, client_environment: dict[str, str], tmp_path: Path) -> Run:
    """Run one scenario of stateful_suite.py against a fresh server with addresses; give what it printed."""
    config = tmp_path / "ports.yaml"
    config.write_text(CONFIG)

    def run_scenario(name: str) -> Any:
        with LocalServer(config=config) as server:
            command = [client_python, "-W", "ignore", str(HERE / "stateful_suite.py"), name]
            command += [server.host, str(server.rpc_port), str(server.pub_port)]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=280, check=False, env=client_environment
            )
            assert server.is_running(), server.stderr
        assert done.returncode == 0, f"the client failed:\n{done.stdout}\n{done.stderr}\n{server.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    return run_scenario


def test_double_start_stop_dynamic_profile(suite: Run) -> None:
    seen = suite("same_text_twice")
    assert seen == {"refused": True, "names": ["_", "first", "second"]}


def test_astf_template_group_edge_cases_dynamic_profile(suite: Run) -> None:
    seen = suite("profiles_one_after_another")
    assert seen["before"] > 0
    assert seen["first"] == 0, "what has ended counts no flows of another"
    for name, group in seen["groups"].items():
        client, server = group["client"], group["server"]
        assert client["tcps_connects"] == server["tcps_accepts"] > 0, name
        assert client["tcps_sndbyte"] == server["tcps_rcvbyte"], name
        assert server["tcps_sndbyte"] == client["tcps_rcvbyte"], name


def test_traffic_vlan(suite: Run) -> None:
    assert set(suite("tagged_traffic").values()) == {True}


def test_ping_vlan(suite: Run) -> None:
    assert suite("ping_in_vlans") == [True, False, True, False]


def test_config_vlan(suite: Run) -> None:
    assert suite("tags_that_are_refused") == [True, True, True, False]


def test_stress_start_stop_dynamic_profile(suite: Run) -> None:
    seen = suite("many_profiles")
    assert seen["running"] == seen["count"] > 128
    assert seen["flows"] >= seen["count"]
    assert seen["stopped"] == seen["count"]
    assert seen["left"] == ["_"]


def test_topo_resolve(suite: Run) -> None:
    assert suite("virtual_interfaces") == [True, False, True]
