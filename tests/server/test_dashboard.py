"""Grafana's dashboard: it asks for what there is, and each panel shows something of a server that is busy."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from allosaur import (
    ASTFClient,
    EMUClient,
    EMUClientObj,
    EMUNamespaceKey,
    EMUNamespaceObj,
    EMUProfile,
    STLClient,
    STLFlowLatencyStats,
    STLPktBuilder,
    STLStream,
    STLTXCont,
)
from allosaur.server import LocalServer
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDE = ROOT / "docs" / "guide" / "metrics.md"
DASHBOARD = ROOT / "docs" / "grafana" / "allosaur.json"
PROFILES = ROOT / "profiles" / "stateful"
FILLED_WITHIN_S = 90
Query = Callable[[str], list[Any]]


class Asked(NamedTuple):
    """What a panel asks, and the labels that its legend shows."""

    title: str
    query: str
    labels: frozenset[str]


def board() -> Any:
    return json.loads(DASHBOARD.read_text())


def asked_by(panels: list[Any]) -> Iterator[Asked]:
    for panel in panels:
        for target in panel.get("targets", []):
            legend = re.findall(r"\{\{\s*(\w+)\s*\}\}", target["legendFormat"])
            yield Asked(panel["title"], target["expr"], frozenset(legend))
        yield from asked_by(panel.get("panels", []))


def of_guide() -> list[Asked]:
    """The queries that the guide shows."""
    queries = re.findall(r"^\|[^|`]*\| `([^`]+)` \|$", GUIDE.read_text(), re.M)
    assert len(queries) > 4
    return [Asked("the guide", query, frozenset()) for query in queries]


def names(query: str) -> list[str]:
    return re.findall(r"\ballosaur_\w+", query)


def row(rows: Mapping[str, Any], name: str) -> Any:
    """The line of the guide that a series belongs to."""
    return rows.get(name) or rows.get(re.sub("_(bucket|sum|count)$", "", name))


def test_panels_lie_beside_each_other() -> None:
    panels = board()["panels"]
    numbers = [panel["id"] for panel in panels]
    assert len(set(numbers)) == len(numbers) > 20
    assert {panel["type"] for panel in panels} == {"row", "stat", "timeseries", "heatmap"}
    places = [panel["gridPos"] for panel in panels]
    cells = [
        (x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])
    ]
    assert len(set(cells)) == len(cells), "panels lie over each other"
    assert max(x for x, _ in cells) == 23


def test_it_asks_for_what_there_is(metric_rows: Mapping[str, Any]) -> None:
    whole = board()
    asked = list(asked_by(whole["panels"]))
    for variable in whole["templating"]["list"]:
        if variable["type"] == "query":
            asked.append(Asked(variable["name"], variable["query"]["query"], frozenset()))
    for title, query, _ in asked:
        assert names(query), f"{title}: {query}"
        for name in names(query):
            known = row(metric_rows, name)
            assert known is not None, f"{title}: there is no metric {name}"
            # A query selects by labels that its metrics have, or that Prometheus gives them.
            for selector in re.findall(rf"{name}\{{([^}}]*)\}}", query):
                labels = set(re.findall(r"(\w+)=~?\"", selector))
                assert labels <= known.labels | {"instance"}, f"{title}: {query}"


def test_promtool_can_read_the_queries_of_dashboard_and_guide(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    asked = [*asked_by(board()["panels"]), *of_guide()]
    rules = [{"record": f"query_{n}", "expr": filled(one.query)} for n, one in enumerate(asked)]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "all", "rules": rules}]}))
    done = subprocess.run(
        [promtool, "check", "rules", path], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def filled(query: str) -> str:
    """A query with Grafana's variables as they are when everything is chosen."""
    query = query.replace("$__rate_interval", "1m")
    for variable in ("instance", "port", "stream"):
        query = query.replace(f"${variable}", ".*")
    # Those of the guide look at seconds, which a machine with other work does not keep.
    return re.sub(r"\[\d+s\]", "[1m]", query)


@pytest.fixture
def busy() -> Iterator[LocalServer]:
    """A server that sends all kinds of traffic, and measures all that it can."""
    packet = STLPktBuilder(pkt=Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12) / bytes(60))
    stream = STLStream(packet=packet, mode=STLTXCont(pps=500), flow_stats=STLFlowLatencyStats(7))
    host = EMUClientObj("02:00:00:71:00:01", plugs={"lldp": {"timer": 1}})
    emulated = EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0), [host]))
    with LocalServer(ports=["memory"] * 4, http=0, emu=True) as running:
        where = {"server": running.host, "sync_port": running.rpc_port, "async_port": running.pub_port}
        emulation = EMUClient(server=running.host, sync_port=running.emu_port or 0)
        with STLClient(**where) as streams, ASTFClient(**where) as flows, emulation:
            emulation.load_profile(emulated)
            streams.reset(ports=[0, 1])
            streams.add_streams(stream, ports=[0])
            streams.start(ports=[0])
            flows.reset(ports=[2, 3])
            for profile, pps in (("http", 100), ("udp_latency", 0)):
                flows.load_profile(str(PROFILES / f"{profile}.py"), pid_input=profile)
                flows.start(pid_input=profile, latency_pps=pps)
            yield running


def test_every_panel_shows_something_of_a_busy_server(
    busy: LocalServer, prometheus: Callable[[LocalServer], Query], metric_rows: Mapping[str, Any]
) -> None:
    query = prometheus(busy)
    until = time.monotonic() + FILLED_WITHIN_S
    compared = 0
    for asked in [*asked_by(board()["panels"]), *of_guide()]:
        # Counters of errors are there from the first error on, which does not happen here.
        if all("it is not 0" in row(metric_rows, name).when for name in names(asked.query)):
            query(filled(asked.query))
            continue
        while not (found := numbers(query(filled(asked.query)))):
            assert time.monotonic() < until, f"{asked.title}: nothing for {filled(asked.query)}"
            time.sleep(0.1)
        labels = frozenset().union(*found)
        # A template without a name has no label.
        assert asked.labels <= labels | {"template"}, asked
        compared += 1
    assert compared > 40


def numbers(result: list[Any]) -> list[frozenset[str]]:
    """The labels of each series that has a number."""
    return [frozenset(one["metric"]) for one in result if math.isfinite(float(one["value"][1]))]
