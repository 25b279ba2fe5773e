"""What `bench/stateful.py` makes of numbers: differences, shares, columns, and what it says is missing."""

from __future__ import annotations

import argparse
import importlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur import ASTFProfile
from allosaur.cli.flows._measured import Sample, Window, between
from allosaur.report._flow_counters import FlowCounters, SideCounters

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module


@pytest.fixture
def stateful(bench: Any) -> ModuleType:
    module: ModuleType = bench("stateful")
    return module


def sample(at_s: float, flows: int, **more: Any) -> Sample:
    """So many flows until a moment, each with ten packets and half a millisecond of the data thread."""
    client = SideCounters(
        begun_flows=flows + 7, closed_flows=flows, tx_packets=4 * flows, rx_packets=6 * flows
    )
    server = SideCounters(
        begun_flows=flows, closed_flows=flows, active_flows=5, tx_packets=6 * flows, rx_packets=4 * flows
    )
    counters = FlowCounters(client, server, more.pop("missed", 0), more.pop("errors", {}))
    return Sample(at_s, flows * 0.0005, flows * 0.0006, flows * 0.0001, counters, **more)


def test_a_window_is_what_grew() -> None:
    first = sample(10.0, 1_000, errors={"client": {"tcps_drops": 2}}, queue_full=5)
    errors = {"client": {"tcps_drops": 3}, "server": {"tcps_drops": 4, "err_cwf": 1}}
    last = sample(12.0, 2_000, missed=50, errors=errors, queue_full=9, rx_lost=3)
    window = between(first, last, active_max=12, memory=1_000)
    assert (window.opened, window.closed, window.missed, window.offered) == (1_000, 1_000, 50, 1_050)
    assert (window.cps, window.cps_running, window.cpu) == (
        500.0,
        pytest.approx(2_000.0),
        pytest.approx(0.25),
    )
    assert window.cpu_us == pytest.approx(500.0)
    assert window.waited == pytest.approx(0.05)
    assert window.packets == 20_000
    assert window.errors == {"tcps_drops": 5, "err_cwf": 1}
    assert (window.drops, window.queue_full, window.active_flows_max) == (3, 4, 12)
    told = json.loads(json.dumps(window.to_json()))
    assert told["pps"] == 10_000.0
    assert told["cps_running"] == window.cps_running


def test_clients_alone_are_counted_by_themselves() -> None:
    """In front of a real server nothing is known of the other end."""
    ends = [FlowCounters(SideCounters(begun_flows=n, closed_flows=n)) for n in (10, 40)]
    window = between(Sample(0.0, 0.0, 0.0, 0.0, ends[0]), Sample(1.0, 0.0, 0.0, 0.0, ends[1]))
    assert window.closed == 30
    assert (window.cps_running, window.cpu_us) == (0.0, 0.0)


def window_of(offered: int, opened: int) -> Window:
    counts = {"closed": opened, "missed": offered - opened, "packets": 0, "wire_bytes": 0, "data_bytes": 0}
    return Window(1.0, 0.5, 0.5, 0.0, offered, opened, **counts)


def test_multipliers_rise_until_one_is_not_carried(
    stateful: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Limited:
        def __init__(self, *_: Any, **__: Any) -> None: ...
        def __enter__(self) -> Limited:
            return self

        def __exit__(self, *_: object) -> None: ...
        def start(self, _: str, multiplier: int) -> None:
            self.multiplier = multiplier

        def measure(self, *_: float) -> Window:
            return window_of(self.multiplier, min(self.multiplier, 30_000))

    monkeypatch.setattr(stateful, "Generator", Limited)
    options = argparse.Namespace(quick=False, core=0, server=None, seconds=1.0)
    rows: Iterator[dict[str, Any]] = stateful.paper(("memory", "memory"), options)
    assert [row["what"] for row in rows] == ["1,000", "5,000", "10,000", "20,000", "50,000"]


def test_a_core_that_others_had_is_not_full(stateful: ModuleType) -> None:
    assert stateful.is_full(window_of(1_000, 900))
    assert not stateful.is_full(window_of(1_000, 980))
    assert not stateful.is_full(replace(window_of(1_000, 900), waited_s=0.3))
    assert not stateful.is_full(replace(window_of(1_000, 900), steal=0.3))


def test_rows_stand_beside_the_yardstick(stateful: ModuleType) -> None:
    rows = [{"what": "flows", "cps_running": 90_000.0}, {"what": "other", "cps": 5.0}]
    stateful.beside_yardstick(rows, None)
    assert "per_mpps" not in rows[0]
    stateful.beside_yardstick(rows, 60.0)
    assert rows[0]["per_mpps"] == 1_500.0
    assert "per_mpps" not in rows[1]


def test_a_case_that_cannot_run_says_why_and_one_that_fails_keeps_its_rows(stateful: ModuleType) -> None:
    def breaks(_: argparse.Namespace) -> Iterator[dict[str, Any]]:
        yield {"what": "first"}
        raise RuntimeError("the second\n broke")

    options = argparse.Namespace()
    absent = stateful.Case("a", "t", (), breaks, lambda _: "there is no `x`: install y")
    assert stateful._measured(absent, options)["not_run"] == "there is no `x`: install y"
    kept = stateful._measured(stateful.Case("a", "t", (), breaks), options)
    assert [row["what"] for row in kept["rows"]] == ["first"]
    assert kept["failed"] == "the second broke"


def test_ports_of_dpdk_keep_their_arguments(stateful: ModuleType) -> None:
    options = argparse.Namespace(dpdk="vdev:net_memif,role=server,id=1,vdev:net_memif1,role=client")
    assert stateful._dpdk_ports(options) == ["vdev:net_memif,role=server,id=1", "vdev:net_memif1,role=client"]
    options = argparse.Namespace(dpdk=stateful.RING_PAIR)
    assert stateful._dpdk_ports(options) == ["ring:bench", "ring:bench"]


def test_rates_over_dpdk_stand_beside_those_over_memory(stateful: ModuleType) -> None:
    windows = {
        "memory": [window_of(1_000, closed) for closed in (1_000, 800, 900)],
        "DPDK": [window_of(1_000, closed) for closed in (900, 760, 450)],
    }
    memory, dpdk = stateful._beside("TCP, 1 B", windows)
    assert (memory["what"], dpdk["what"]) == ("TCP, 1 B, memory", "TCP, 1 B, DPDK")
    assert (memory["closed"], memory["of_memory"]) == (900, None)
    # Each round is compared with its neighbor in time.
    assert (dpdk["closed"], dpdk["of_memory"]) == (760, pytest.approx(0.9))


def test_time_a_connection_is_that_of_each_process(bench: Any) -> None:
    web = bench("web")
    first = {
        "at_s": 1.0,
        "connections": 10,
        "ran": {"own": 0.5, "nginx": 2.0},
        "softirq": {"own": 7.0, "nginx": 8.0},
    }
    last = {
        "at_s": 3.0,
        "connections": 1_010,
        "ran": {"own": 0.6, "nginx": 3.0},
        "softirq": {"own": 7.04, "nginx": 8.01},
    }
    row = web.per_connection(first, last)
    assert (row["connections"], row["cps"]) == (1_000, 500.0)
    assert (row["own_us"], row["nginx_us"]) == (pytest.approx(100.0), pytest.approx(1_000.0))
    assert row["nginx"] == pytest.approx(0.5)
    # The receiving that each did for the other is the other's.
    assert (row["own_apart_us"], row["nginx_apart_us"]) == (pytest.approx(70.0), pytest.approx(1_030.0))
    assert web.per_connection(first, {**last, "connections": 10})["own_us"] is None


def test_time_in_soft_interrupts_is_that_of_the_cpu(bench: Any, tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  9 8 7 6 5 4 333 2 1 0\ncpu1 9 8 7 6 5 4 33 2 1 0\ncpu11 9 8 7 6 5 4 300 2 1 0\n")
    ticks = os.sysconf("SC_CLK_TCK")
    assert bench("web").softirq_s(1, stat) == 33 / ticks
    assert bench("web").softirq_s(11, stat) == 300 / ticks


def test_the_report_has_what_was_measured_and_what_was_not(
    bench: Any, stateful: ModuleType, tmp_path: Path
) -> None:
    report = bench("stateful_report")
    paper = {
        "name": "paper, memory link",
        "title": "the paper",
        "rows": [stateful._row("50", window_of(50, 50))],
    }
    failed = {"name": "open", "title": "open flows", "rows": [], "failed": "too few were open"}
    wrk = {"name": "client", "title": "clients", "rows": [{"what": "ab", "not_run": "install apache2-utils"}]}
    results = {"machine": {"cores": 2}, "binary": "server", "cases": [paper, failed, wrk]}
    columns = {case.name: case.columns for case in stateful.CASES}
    report.write(tmp_path / "report.html", results, columns)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for text in ("the paper", "too few were open", "install apache2-utils", "paper--memory-link-cps"):
        assert text in page
    assert report.problems(failed) == ["open: failed: too few were open"]
    largest = report._counts({"tcps_drops": 1, "err_cwf": 12_000})
    assert largest == "err_cwf 12,000 (+1)"
    assert [column.key for column in report.shown(columns["client"], wrk["rows"])] == []


def test_profiles_of_the_benchmark_can_be_loaded(bench: Any) -> None:
    loads = bench("loads")
    long, silent = loads.responses(1_000_000, 20), loads.silent(1_000, 50)
    for profile in (long, silent):
        assert isinstance(profile, ASTFProfile)
    client = long.to_json()["templates"][0]["client_template"]
    assert (client["limit"], client["cont"]) == (20, True)
    client = silent.to_json()["templates"][0]["client_template"]
    assert (client["limit"], client["cps"], client.get("cont", False)) == (1_000, 50, False)
