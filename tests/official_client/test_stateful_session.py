"""TRex's stateful client and ours do the same with the same script: they ask the same, and see the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur.testing import MockStatefulTransport

HERE = Path(__file__).resolve().parent
SCENARIOS = ("one_run", "many_profiles", "template_groups", "beside_the_traffic", "network")
#: What only asks; clients may ask more, and in another order.
QUESTIONS = ("get_", "sync", "ping", "publish_now", "api_sync", "topo_get")
#: What is of one client: its keys, and who it is.
OWN = ("handler", "api_h", "session_id", "user")


#: The state of a profile that is being removed.
DELETE = 6


class SlowBox(MockStatefulTransport):
    """A mock that takes its time to remove a profile, as servers do.

    TRex's client looks at the state every millisecond and must see that it is being removed.
    """

    def _remove(self, name: str) -> None:
        if self._states[name] == DELETE:
            threading.Timer(0.3, super()._remove, [name]).start()
        else:
            super()._remove(name)


@pytest.fixture
def mock(transcript: Callable[[str], list[Any]]) -> MockStatefulTransport:
    """A mock that says of itself what a real server said."""
    made = SlowBox()
    wanted = {"get_system_info", "get_port_xstats_names", "get_port_xstats_values", "get_global_stats"}
    asked: dict[str, str] = {}
    for line in transcript("astf_a01"):
        messages = line.get("msg")
        for one in messages if isinstance(messages, list) else [messages]:
            if isinstance(one, dict) and one.get("method") in {*wanted, "get_port_status"}:
                asked[one["id"]] = one["method"]
            elif isinstance(one, dict) and one.get("id") in asked:
                answer_as(made, asked.pop(one["id"]), one["result"])
    for method, answer in {
        "get_active_pgids": {"ids": {"flow_stats": [], "latency": []}},
        "get_pgid_stats": {"flow_stats": None, "latency": {"g": None}, "ver_id": None},
    }.items():
        made.answer(method, answer)
    made.counters = {
        "client": {"tcps_connects": 7, "m_traffic_duration": 1.5},
        "server": {"tcps_connects": 7, "tcps_drops": 1},
    }
    return made


def answer_as(mock: MockStatefulTransport, method: str, result: Any) -> None:
    """Answer a method as the real server did; the states of ports stay the mock's own."""
    if method != "get_port_status":
        mock.answer(method, result)
        return

    def status(params: dict[str, Any]) -> Any:
        own = mock._ports[params["port_id"]].status()
        kept = {name: own[name] for name in ("owner", "service", "service_filtered")}
        return {**result, **kept, "state": "IDLE", "state_profile": {"_": "IDLE"}}

    mock.answer(method, status)


def run(
    serve: Any, python: str, scenario: str, mock: MockStatefulTransport, environment: dict[str, str]
) -> Any:
    """Run a scenario against a mock, and give what the client printed."""
    with serve(mock) as served:
        command = [python, "-W", "ignore", str(HERE / "stateful_session.py"), scenario]
        done = subprocess.run(
            [*command, served.host, str(served.rpc_port), str(served.pub_port)],
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
            env=environment,
        )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


def changes(mock: MockStatefulTransport) -> list[tuple[str, dict[str, Any]]]:
    """The requests that changed something, without what is of one client."""
    return [
        (method, {name: value for name, value in params.items() if name not in OWN})
        for method, params in mock.calls
        if not method.startswith(QUESTIONS)
    ]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_both_clients_do_the_same(
    scenario: str,
    mock: MockStatefulTransport,
    client_python: str,
    client_environment: dict[str, str],
    serve: Any,
) -> None:
    theirs = run(serve, client_python, scenario, mock, client_environment)
    their_changes = changes(mock)
    mock.calls.clear()
    mock.epoch = 0
    import allosaur

    ours_on_path = {**os.environ, "PYTHONPATH": str(Path(allosaur.__file__).resolve().parents[1])}
    ours = run(serve, sys.executable, scenario, mock, ours_on_path)
    assert ours == theirs
    assert changes(mock) == their_changes
