"""The registry of metrics of `allosaur.testing`: what the mock counts, read as that of a server."""

from __future__ import annotations

import pytest
from allosaur import ASTFClient, STLClient
from allosaur.testing import MockMetric, MockStatefulTransport, MockTransport


def connected(mock: MockTransport) -> STLClient:
    client = (ASTFClient if isinstance(mock, MockStatefulTransport) else STLClient)(transport=mock)
    client.connect()
    return client


def test_what_ports_count_is_in_the_registry() -> None:
    mock = MockTransport()
    client = connected(mock)
    mock.port_stats[0].update(opackets=10, obytes=640, missed_packets=3)
    mock.port_stats[1]["ipackets"] = 9
    metrics = client.get_metrics()
    assert metrics.value("allosaur_port_packets", port=0, direction="tx") == 10
    assert metrics.value("allosaur_port_packets", port=1, direction="rx") == 9
    assert metrics.value("allosaur_port_bytes", port=0, direction="tx") == 640
    assert metrics.series("allosaur_port_missed_packets") == {("0",): 3, ("1",): 0}
    assert metrics.families["allosaur_port_missed_packets"].is_error
    assert not metrics.families["allosaur_port_packets"].is_error
    assert client.get_metrics().time_ns >= metrics.time_ns


def test_a_test_may_add_metrics_and_ask_for_some() -> None:
    mock = MockTransport()
    client = connected(mock)
    mock.metrics["allosaur_emulation_clients"] = MockMetric("gauge", (), {(): 5}, "emulated clients")
    mock.metrics["allosaur_emulation_none"] = MockMetric()
    metrics = client.get_metrics(["allosaur_emulation_"])
    assert list(metrics.families) == ["allosaur_emulation_clients", "allosaur_emulation_none"]
    assert metrics.value("allosaur_emulation_clients") == 5
    assert metrics.series("allosaur_emulation_none") == {}
    assert client.get_metrics(["allosaur_port_packets"], families=False).families == {}


def test_what_flows_count_is_in_the_registry() -> None:
    mock = MockStatefulTransport()
    client = connected(mock)
    mock.counters = {"client": {"tcps_connattempt": 7, "m_active_flows": 2}, "server": {"tcps_accepts": 6}}
    mock.outcomes["client"] = {"reset": 4}
    metrics = client.get_metrics()
    assert metrics.series("allosaur_tcps_connattempt") == {}, "no profile is loaded"
    client.acquire()
    client.load_profile(PROFILE, pid_input="web")
    metrics = client.get_metrics(["allosaur_tcps_", "allosaur_active_flows", "allosaur_flow_"])
    where = {"profile": "web", "template": "", "side": "client"}
    assert metrics.value("allosaur_tcps_connattempt", **where) == 7
    assert metrics.value("allosaur_active_flows", **where) == 2
    assert metrics.families["allosaur_active_flows"].kind == "gauge"
    assert metrics.families["allosaur_tcps_drops"].is_error
    outcome = {"profile": "web", "side": "client"}
    assert metrics.value("allosaur_flow_outcomes", outcome="reset", **outcome) == 4
    assert metrics.value("allosaur_flow_outcomes", outcome="completed", **outcome) == 3


PROFILE = "profiles/stateful/http.py"


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.chdir(request.config.rootpath)
