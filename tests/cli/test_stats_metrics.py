"""`allosaur stats` and the registry of metrics: any family, and what emulated clients count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from allosaur.testing import MockMetric, MockTransport

CLIENTS = "allosaur_emulation_clients"


@pytest.fixture
def mock() -> MockTransport:
    made = MockTransport()
    made.port_stats[0].update(opackets=1234, missed_packets=3)
    spread = {"count": 4, "sum": 0.5, "buckets": [[0.1, 3], [float("inf"), 4]], "quantiles": {}, "max": 0.3}
    made.metrics["allosaur_stream_latency_seconds"] = MockMetric("histogram", ("stream",), {("7",): spread})
    return made


@pytest.fixture
def at(mock: MockTransport, serve: Any) -> Iterator[list[str]]:
    with serve(mock) as served:
        yield ["--server", f"{served.host}:{served.rpc_port}", "--pub-port", str(served.pub_port)]


def test_any_metric_is_shown_by_its_prefix(allosaur: Callable[..., Any], at: list[str]) -> None:
    shown = allosaur("stats", "--metrics", "port_packets", "allosaur_port_missed", *at)
    assert shown.code == 0, shown
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["port_packets", "port=0", "direction=tx", "1,234", "packets"] in lines
    assert ["!", "port_missed_packets", "port=0", "3", "packets"] in lines
    assert ["port_missed_packets", "port=1", "0", "packets"] in lines
    assert "port_bytes" not in shown.out and "sent packets" not in shown.out
    whole = allosaur("stats", "--metrics", *at)
    assert "port_bytes" in whole.out
    assert "4, mean 0.125, max 0.3" in whole.out


def test_metrics_are_told_to_programs(allosaur: Callable[..., Any], at: list[str]) -> None:
    told = allosaur("stats", "--metrics", "port_missed", "stream_latency", *at, "--json").json()["metrics"]
    missed = told["allosaur_port_missed_packets"]
    assert (missed["kind"], missed["is_error"]) == ("counter", True)
    assert missed["series"][0] == {"labels": {"port": "0"}, "value": 3}
    ((latency,)) = told["allosaur_stream_latency_seconds"]["series"]
    assert latency["value"]["buckets"] == [[0.1, 3], [None, 4]]
    assert len(told) == 2


def test_a_metric_that_is_not_there_is_named_with_the_nearest(
    allosaur: Callable[..., Any], at: list[str]
) -> None:
    allosaur("stats", "--metrics", "port_mised_packets", *at).refused(
        "port_mised_packets", "did you mean allosaur_port_missed_packets?"
    )
    allosaur("stats", "--metrics", "zzz", *at).refused("zzz", "without PREFIX all are shown")


def test_emulated_clients_are_shown_where_there_are_any(
    allosaur: Callable[..., Any], mock: MockTransport, at: list[str]
) -> None:
    mock.metrics[CLIENTS] = MockMetric("gauge", (), {(): 0}, "clients that are emulated")
    mock.metrics["allosaur_emulation_arp_requests"] = MockMetric("counter", (), {(): 9}, "requests that came")
    mock.metrics["allosaur_emulation_arp_replies"] = MockMetric("counter", (), {(): 0}, "replies")
    wrong = MockMetric("counter", (), {(): 2}, "leases that were refused", is_error=True)
    mock.metrics["allosaur_emulation_dhcp_nak"] = wrong
    assert "emulated" not in allosaur("stats", *at).out
    assert "mulated" not in allosaur("status", *at).out
    assert "emulation" not in allosaur("stats", *at, "--json").json()
    mock.metrics[CLIENTS] = MockMetric("gauge", (), {(): 60}, "clients that are emulated")
    shown = allosaur("stats", *at).out
    assert "sent packets" in shown
    found = shown[shown.index("emulated clients") :].splitlines()
    rows = [line.split() for line in found]
    assert ["clients", "60", "clients", "that", "are", "emulated"] in rows
    first, second = (rows.index(one) for one in rows if {"arp_requests", "dhcp_nak"} & set(one))
    assert rows[first][:3] == ["!", "dhcp_nak", "2"] and rows[second][0] == "arp_requests"
    assert "arp_replies" not in shown
    told = allosaur("stats", *at, "--json").json()
    assert told["emulation"]["clients"] == 60
    assert told["emulation"]["metrics"]["allosaur_emulation_dhcp_nak"]["series"][0]["value"] == 2
    assert told["ports"]["0"]["tx_packets"] == 1234
    assert "Emulated: 60 clients (`allosaur stats`)" in allosaur("status", *at).out
    assert allosaur("status", *at, "--json").json()["emulated_clients"] == 60


def test_a_server_without_a_registry_has_its_counters_and_says_so(
    allosaur: Callable[..., Any], serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(MockTransport, "_do_get_metrics")
    with serve(MockTransport()) as served:
        at = ["--server", f"{served.host}:{served.rpc_port}", "--pub-port", str(served.pub_port)]
        assert "sent packets" in allosaur("stats", *at).out
        allosaur("stats", "--metrics", *at).failed(3, "cannot read the metrics", "does not tell")
