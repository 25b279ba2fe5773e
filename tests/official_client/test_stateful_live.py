"""TRex's official stateful client, unchanged, against our server with real traffic."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur.server import LocalServer

HERE = Path(__file__).resolve().parent
ASK_BYTES = 18

Run = Callable[[str], Any]


@pytest.fixture
def stateful(client_python: str, client_environment: dict[str, str]) -> Run:
    """Run one scenario of stateful_session.py against a fresh server; give what it printed."""

    def run_scenario(name: str) -> Any:
        with LocalServer(stateful=True) as server:
            command = [client_python, "-W", "ignore", str(HERE / "stateful_session.py"), name]
            command += [server.host, str(server.rpc_port), str(server.pub_port)]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=110, check=False, env=client_environment
            )
            assert server.is_running(), server.stderr
        assert done.returncode == 0, f"the client failed:\n{done.stdout}\n{done.stderr}\n{server.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    return run_scenario


def whole(traffic: dict[str, Any], size: int) -> int:
    """Check that all flows are good to the last byte. Gives how many there were."""
    client, server = traffic["client"], traffic["server"]
    flows = client["tcps_connects"]
    assert flows > 0
    assert client["tcps_connattempt"] == server["tcps_accepts"] == server["tcps_connects"] == flows
    assert client["tcps_closed"] == server["tcps_closed"] == flows
    assert client["tcps_sndbyte"] == server["tcps_rcvbyte"] == flows * ASK_BYTES
    assert server["tcps_sndbyte"] == client["tcps_rcvbyte"] == flows * size
    return int(flows)


def test_whole_runs(stateful: Run) -> None:
    seen = stateful("whole_runs")
    assert seen["states"] == [{"_": "STATE_TX"}, {"_": "STATE_ASTF_LOADED"}]
    flows = whole(seen["traffic"], 32_000)
    assert seen["errors"] == [False, {"client": {}, "server": {}}]
    assert seen["warnings"] == []
    assert seen["names"] == ["first", "second"]
    assert sum(whole(group, 32_000) for group in seen["groups"].values()) == flows
    assert whole(seen["sum"], 32_000) == flows
    assert seen["dynamic"] == {"client": {}, "server": {}}
    ours = {"err_address_spaces", "err_tunnel_header", "err_tunnel_network"}
    assert ours <= set(seen["all"]), "what we count besides"
    assert len(seen["all"]) == 127 + len(ours) + 5, "all counters, and the lines between, by their five names"
    assert seen["ports"][0] == seen["ports"][1] > flows * 5
    assert "tcps_connects" not in seen["cleared"]["client"]
    assert seen["again"]["client"]["tcps_connects"] > 0


def test_changes_while_it_runs(stateful: Run) -> None:
    seen = stateful("changes_while_it_runs")
    assert seen["slow"] >= 1
    assert seen["fast"] >= 100
    assert seen["works_again"] >= 20
    assert seen["latency"]["hist"]["cnt"] > 0
    assert seen["latency"]["stats"]["m_seq_error"] == 0
    assert seen["flows"]["next_index"] > 0
    assert all(one["Found"] == 1 for one in seen["clients"].values())
    assert seen["state"] == {"_": "STATE_ASTF_LOADED"}
    assert seen["errors"] == {"client": {}, "server": {}}


def test_profiles_side_by_side(stateful: Run) -> None:
    seen = stateful("side_by_side")
    running, loaded = "STATE_TX", "STATE_ASTF_LOADED"
    assert seen["both"] == {"_": "STATE_IDLE", "one": running, "two": running}
    assert set(seen["names"]) == {"_", "one", "two"}
    assert seen["half"] == {"_": "STATE_IDLE", "one": loaded, "two": running}
    assert seen["left"] == {"_": "STATE_IDLE"}


@pytest.mark.parametrize(
    "name", ["one_run", "many_profiles", "template_groups", "beside_the_traffic", "network", "service"]
)
def test_what_scripts_call_is_there(stateful: Run, name: str) -> None:
    """The scenarios that both clients do alike, with a server that is no mock."""
    seen = stateful(name)
    if name == "one_run":
        assert seen["states"] == [
            {"_": "STATE_TX"},
            {"_": "STATE_ASTF_LOADED"},
            {"_": "STATE_IDLE"},
        ]
    if name == "many_profiles":
        assert [seen[key] for key in ("started_twice", "no_such", "all_at_once")] == [True, True, True]
        assert seen["left"] == {"_": "STATE_IDLE"}
    if name == "beside_the_traffic":
        assert seen["ignored"] == {"ips": ["16.0.0.9"], "macs": ["02:00:00:00:00:99"]}
        assert seen["tunnels"] == [False, True] or seen["tunnels"][1] is True
    if name == "network":
        assert seen["twice"] is True
