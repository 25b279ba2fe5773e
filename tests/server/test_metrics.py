"""Metrics: what Prometheus reads is what the RPC tells; and the guide shows all of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zmq
from allosaur import (
    ASTFAssociationRule,
    ASTFClient,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
    STLClient,
    STLError,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLStream,
    STLTXSingleBurst,
)
from allosaur.metrics import Distribution, MetricFamily, Metrics
from allosaur.server import LocalServer
from prometheus_client import parser as plain
from prometheus_client.openmetrics import parser as openmetrics
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

PACKETS = 300
CONNECTIONS = 30
ODD_NAME = 'a "name" \\ with\nall, of={it}'
SIDES = ("client", "server")
HTTPS_GET = Path(__file__).resolve().parents[2] / "profiles" / "stateful" / "https_get.py"
#: How soon data threads publish what they counted.
PUBLISHED_S = 0.005
OPENMETRICS = "application/openmetrics-text"


class Scrape(NamedTuple):
    """What a server's /metrics said."""

    families: dict[str, Any]
    values: dict[tuple[str, frozenset[tuple[str, str]]], float]

    def __call__(self, name: str, /, **labels: object) -> float:
        """The value of one series."""
        key = frozenset((label, str(value)) for label, value in labels.items() if value != "")
        return self.values[name, key]

    def labels(self, name: str) -> list[dict[str, str]]:
        """The labels of all series of a name."""
        return [dict(labels) for found, labels in self.values if found == name]


def get(server: LocalServer, path: str, accept: str = OPENMETRICS) -> tuple[str, str]:
    """The type and the text of a page."""
    assert server.http_url is not None
    request = urllib.request.Request(server.http_url + path, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.headers["Content-Type"], response.read().decode()


def scraped(server: LocalServer) -> Scrape:
    kind, text = get(server, "/metrics")
    assert kind.startswith(f"{OPENMETRICS}; version=1.0.0")
    families = {family.name: family for family in openmetrics.text_string_to_metric_families(text)}
    samples = [sample for family in families.values() for sample in family.samples]
    values = {(sample.name, labels_of(sample)): sample.value for sample in samples}
    assert len(values) == len(samples), "a series is there twice"
    return Scrape(families, values)


def labels_of(sample: Any) -> frozenset[tuple[str, str]]:
    # An empty label is the same as none.
    return frozenset((name, value) for name, value in sample.labels.items() if value)


def stream(size: int, name: str | None = None, stats: Any = None) -> STLStream:
    headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12)
    packet = STLPktBuilder(pkt=headers / bytes(size - 4 - len(headers)))
    mode = STLTXSingleBurst(pps=10_000, total_pkts=PACKETS)
    return STLStream(packet=packet, mode=mode, name=name, flow_stats=stats)


def web(templates: Mapping[int, str | None], connections: int = CONNECTIONS) -> ASTFProfile:
    """Templates with these names, by their TCP ports; each opens so many connections."""
    pools = ASTFIPGen(
        dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
        dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
    )
    client, server = ASTFProgram(), ASTFProgram()
    client.send(b"GET / HTTP/1.1\r\n\r\n")
    client.recv(4000)
    server.recv(18)
    server.send(b"*" * 4000)

    def template(port: int, name: str | None) -> ASTFTemplate:
        sides = {
            "client_template": ASTFTCPClientTemplate(
                program=client, ip_gen=pools, port=port, cps=200, limit=connections
            ),
            "server_template": ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port)),
        }
        return ASTFTemplate(**sides, tg_name=name)

    return ASTFProfile(default_ip_gen=pools, templates=[template(*one) for one in templates.items()])


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    """A server of which two ports have sent streams, and two flows."""
    with LocalServer(ports=["memory"] * 4, http=0) as running:
        where = {"server": running.host, "sync_port": running.rpc_port, "async_port": running.pub_port}
        with STLClient(**where) as streams, ASTFClient(**where) as flows:
            streams.reset(ports=[0, 1])
            streams.add_streams(stream(64, stats=STLFlowStats(7)), ports=[0, 1])
            streams.add_streams(stream(1400, stats=STLFlowLatencyStats(8)), ports=[0])
            streams.add_streams(stream(600), ports=[1])
            flows.reset(ports=[2, 3])
            flows.load_profile(web({80: "web", 81: None}))
            flows.start(latency_pps=200)
            streams.start(ports=[0, 1])
            streams.wait_on_traffic(ports=[0, 1])
            flows.wait_on_traffic()
            wait_until(lambda: streams.get_stats()["total"]["ipackets"] >= 4 * PACKETS)
            # Answers are under way for a while after the last request.
            wait_until(lambda: all_came(flows.get_latency_stats()))
            wait_until(lambda: all_counted(flows))
            yield running


def all_came(latency: Mapping[int, Any]) -> bool:
    """Whether each port of flows has received what the other sent."""
    ends = [latency[port]["stats"] for port in (2, 3)]
    return ends[0]["m_tx_pkt_ok"] == ends[1]["m_pkt_ok"] and ends[1]["m_tx_pkt_ok"] == ends[0]["m_pkt_ok"]


def all_counted(flows: ASTFClient) -> bool:
    """Whether data threads have published all that came: ports count frames, and flows what is of none.

    Of the answers to echoes those count as none's that came after flows began, which no other counter tells.
    """
    ports, strangers = flows.get_stats_stl(), strangers_of(flows)
    frames = [ports[port]["ipackets"] for port in (2, 3)]
    sent = [ports[port]["opackets"] for port in (3, 2)]
    if frames != sent:
        return False
    time.sleep(4 * PUBLISHED_S)
    return strangers_of(flows) == strangers


def strangers_of(flows: ASTFClient) -> list[int]:
    sides = flows.get_stats()["traffic"]
    return [sides[side].get("err_no_tcp_udp", 0) for side in SIDES]


def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if is_so():
            return
    raise AssertionError("it does not happen")


class Rpc:
    """Asks the server as the RPC has it."""

    def __init__(self, server: LocalServer, socket: zmq.Socket[bytes]) -> None:
        self.socket = socket
        socket.setsockopt(zmq.RCVTIMEO, 60_000)
        socket.connect(f"tcp://{server.host}:{server.rpc_port}")
        self.handles = {
            name: self("api_sync_v2", name=name, major=major, minor=minor)["api_h"]
            for name, major, minor in (("STL", 5, 1), ("ASTF", 2, 3))
        }

    def __call__(self, method: str, **params: object) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.socket.send(json.dumps(request).encode())
        reply = json.loads(self.socket.recv())
        assert "result" in reply, reply
        return reply["result"]

    def streams(self, method: str, **params: object) -> Any:
        return self(method, api_h=self.handles["STL"], **params)

    def flows(self, method: str, **params: object) -> Any:
        return self(method, api_h=self.handles["ASTF"], **params)


@pytest.fixture(scope="module")
def rpc(server: LocalServer) -> Iterator[Rpc]:
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        yield Rpc(server, socket)


@pytest.fixture(scope="module")
def scrape(server: LocalServer) -> Scrape:
    """What is read when nothing moves any more."""
    return scraped(server)


def test_ports(scrape: Scrape, rpc: Rpc) -> None:
    sizes = {
        "64.0": "64",
        "127.0": "65-127",
        "255.0": "128-255",
        "511.0": "256-511",
        "1023.0": "512-1023",
        "1518.0": "1024-1518",
        "+Inf": "1519-",
    }
    for port, about in enumerate(rpc.streams("get_system_info")["ports"]):
        stats = rpc.streams("get_port_stats", port_id=port, by_size=True)
        for direction, letter in (("tx", "o"), ("rx", "i")):
            of_port = {"port": port, "direction": direction}
            assert scrape("allosaur_port_packets_total", **of_port) == stats[f"{letter}packets"]
            assert scrape("allosaur_port_bytes_total", **of_port) == stats[f"{letter}bytes"]
            below = 0
            assert stats[f"{direction}_by_size"].keys() == set(sizes.values())
            for size, of_size in sizes.items():
                below += stats[f"{direction}_by_size"][of_size]
                assert scrape("allosaur_port_frame_bytes_bucket", **of_port, le=size) == below
            assert scrape("allosaur_port_frame_bytes_count", **of_port) == stats[f"{letter}packets"]
            assert scrape("allosaur_port_frame_bytes_sum", **of_port) == stats[f"{letter}bytes"]
        assert scrape("allosaur_port_missed_packets_total", port=port) == stats["missed_packets"]
        assert scrape("allosaur_port_queue_full_total", port=port) == stats["queue_full"]
        assert scrape("allosaur_port_tx_lost_packets_total", port=port) == stats["oerrors"]
        assert scrape("allosaur_port_rx_lost_packets_total", port=port) == stats["rx_lost_packets"]
        info = next(one for one in scrape.labels("allosaur_port_info") if one["port"] == str(port))
        assert (info["driver"], info["description"]) == (about["driver"], about["description"])
        assert scrape("allosaur_port_link_up", port=port) == 1
        assert scrape("allosaur_port_sending", port=port) == 0
    assert scrape("allosaur_port_packets_total", port=1, direction="rx") == 2 * PACKETS


def test_streams(scrape: Scrape, rpc: Rpc) -> None:
    groups = rpc.streams("get_pgid_stats", pgids=[7, 8])["flow_stats"]
    seen = 0
    for labels in scrape.labels("allosaur_stream_packets_total"):
        group, port = groups[labels["stream"]], labels["port"]
        key = {"tx": "t", "rx": "r"}[labels["direction"]]
        assert scrape("allosaur_stream_packets_total", **labels) == group[f"{key}p"][port]
        assert scrape("allosaur_stream_bytes_total", **labels) == group[f"{key}b"][port]
        if key == "t":
            del labels["direction"]
            assert scrape("allosaur_stream_missed_packets_total", **labels) == group["missed"][port]
        seen += 1
    # Each direction of both ports, and one of a stream on one port.
    assert seen == 4 + 2
    assert scrape("allosaur_stream_packets_total", stream=8, profile="_", port=1, direction="rx") == PACKETS


def test_latency(scrape: Scrape, rpc: Rpc) -> None:
    answer = rpc.streams("get_pgid_stats", pgids=[8])["latency"]
    measured, errors = answer["8"]["lat"], answer["8"].get("er") or {}
    about = {"stream": 8, "profile": "_"}
    name = "allosaur_stream_latency_seconds"
    assert scrape(f"{name}_count", **about) == measured["packets"] == PACKETS
    assert scrape(f"{name}_sum", **about) == pytest.approx(measured["sum_ns"] / 1e9, rel=1e-12)
    bounds = sorted(float(one["le"]) for one in scrape.labels(f"{name}_bucket"))
    histogram = {int(usec): packets for usec, packets in measured["histogram"].items()}
    below = dict.fromkeys(bounds, 0.0)
    for labels in scrape.labels(f"{name}_bucket"):
        below[float(labels["le"])] = scrape(f"{name}_bucket", **labels)
    assert [round(bound * 1e6) for bound in bounds[:11]] == [*range(1, 10), 10, 20]
    for bound in bounds[9:]:
        assert below[bound] == sum(n for usec, n in histogram.items() if usec < bound * 1e6 - 0.5), bound
    # Below 10 µs the RPC has percentiles only.
    fast = [usec for usec in range(1, 10) if below[usec / 1e6] >= PACKETS / 2]
    if fast:
        assert measured["p50"] < fast[0] + 0.01
    for gauge, field in (("min", "min"), ("max", "max")):
        value = scrape(f"allosaur_stream_latency_{gauge}_seconds", **about)
        assert value == pytest.approx(measured[field] / 1e6, abs=1e-8)
    assert scrape("allosaur_stream_latency_last_max_seconds", **about) * 1e6 // 1 == measured["last_max"]
    assert scrape("allosaur_stream_jitter_seconds", **about) * 1e6 // 1 == measured["jit"]
    counted = {
        "drp": "allosaur_stream_dropped_packets",
        "ooo": "allosaur_stream_out_of_order_packets_total",
        "dup": "allosaur_stream_duplicate_packets_total",
        "sth": "allosaur_stream_sequence_too_high_total",
        "stl": "allosaur_stream_sequence_too_low_total",
    }
    for field, series in counted.items():
        assert scrape(series, **about) == errors.get(field, 0)
    foreign = answer["g"] or {}
    for reason in ("old_flow", "bad_header"):
        assert scrape("allosaur_latency_foreign_packets_total", reason=reason) == foreign.get(reason, 0)


def test_echo_streams(scrape: Scrape, rpc: Rpc) -> None:
    measured = rpc.flows("get_latency_stats")["data"]
    wrong = {
        "no_stamp": "m_no_magic",
        "foreign": "m_no_id",
        "length": "m_length_error",
        "network_checksum": "m_l3_cs_err",
        "transport_checksum": "m_l4_cs_err",
    }
    for port in (2, 3):
        about = {"port": port, "profile": "_"}
        stats, times = measured[f"port-{port}"]["stats"], measured[f"port-{port}"]["hist"]
        assert scrape("allosaur_echo_packets_total", **about, direction="tx") == stats["m_tx_pkt_ok"] > 0
        assert scrape("allosaur_echo_packets_total", **about, direction="rx") == stats["m_pkt_ok"] > 0
        assert scrape("allosaur_echo_missed_packets_total", **about) == stats["m_tx_pkt_err"]
        for reason, field in wrong.items():
            assert scrape("allosaur_echo_wrong_packets_total", **about, reason=reason) == stats[field]
        assert scrape("allosaur_echo_dropped_packets", **about) == stats["dropped"]
        assert scrape("allosaur_echo_jitter_seconds", **about) * 1e6 // 1 == stats["m_jitter"]
        name = "allosaur_echo_latency_seconds"
        assert scrape(f"{name}_count", **about) == times["cnt"] == stats["m_pkt_ok"]
        assert scrape("allosaur_echo_latency_min_seconds", **about) * 1e6 // 1 == times["min_usec"]
        assert scrape("allosaur_echo_latency_max_seconds", **about) * 1e6 // 1 == times["max_usec"]
        below_10_usec = scrape(f"{name}_bucket", **about, le="1e-05")
        assert below_10_usec == times["cnt"] - times["high_cnt"]
        for bound in (2e-05, 1e-4, 1e-3, 1.0):
            within = sum(one["val"] for one in times["histogram"] if one["key"] < bound * 1e6 - 0.5)
            le = {2e-05: "2e-05", 1e-4: "0.0001", 1e-3: "0.001", 1.0: "1.0"}[bound]
            assert scrape(f"{name}_bucket", **about, le=le) == below_10_usec + within


def rows(rpc: Rpc) -> Mapping[str, Mapping[str, Any]]:
    """Of each counter of flows its number and its kind."""
    described = rpc.flows("get_counter_desc", profile_id="_")["data"]
    return {row["name"]: row for row in described if row["real"]}


def test_flows(scrape: Scrape, rpc: Rpc) -> None:
    names = rpc.flows("get_tg_names", profile_id="_", initialized=False)
    assert names["tg_names"] == ["web"]
    of_web = rpc.flows("get_tg_id_stats", profile_id="_", epoch=names["epoch"], tg_ids=[1])["1"]
    total = rpc.flows("get_counter_values", profile_id="_")
    compared = 0
    for name, row in rows(rpc).items():
        series = f"allosaur_{name.removesuffix('_total')}_total"
        for side in SIDES:
            all_of, web_of = (values[side].get(str(row["id"]), 0) for values in (total, of_web))
            about = {"profile": "_", "side": side}
            if {"side": side} in scrape.labels(series):
                assert scrape(series, side=side) == all_of, name
            elif {**about, "template": "web"} in scrape.labels(series):
                assert scrape(series, **about, template="web") == web_of, name
                rest = scrape(series, **about) if about in scrape.labels(series) else 0
                assert rest == all_of - web_of, name
            else:
                # Rates, which Prometheus makes itself; what is not there; errors that did not happen.
                assert row["abs"] or all_of == 0, name
                continue
            compared += 1
    assert compared > 100
    assert scrape("allosaur_tcps_connects_total", profile="_", template="web", side="client") == CONNECTIONS
    offered = rpc.flows("get_flow_rates", profile_id="_")
    assert scrape("allosaur_flows_offered_per_second", profile="_") == offered["offered_cps"] == 0
    missed = [
        scrape("allosaur_flows_missed_total", **one) for one in scrape.labels("allosaur_flows_missed_total")
    ]
    assert (len(missed), sum(missed)) == (2, offered["missed"])
    for gauge, name in (("active", "m_active_flows"), ("established", "m_est_flows")):
        series = f"allosaur_{gauge}_flows"
        values = [scrape(series, **one) for one in scrape.labels(series) if one["side"] == "client"]
        assert sum(values) == total["client"].get(str(rows(rpc)[name]["id"]), 0)


def test_ends_of_flows(scrape: Scrape, rpc: Rpc) -> None:
    told = rpc.flows("get_flow_outcomes", profile_id="_")
    assert told["client"]["completed"] == told["server"]["completed"] > 0
    for side in SIDES:
        for name, count in told[side].items():
            if name == "unanswered":
                assert scrape("allosaur_flow_unanswered_total", profile="_", side=side) == count == 0
            elif not name.startswith("http_"):
                series = "allosaur_flow_outcomes_total"
                assert scrape(series, profile="_", side=side, outcome=name) == count, name
    assert told["applications"] == []
    for name in ("handshake", "response_begin", "response"):
        assert told["times"].pop(name) == {"count": 0}
    for name, times in told["times"].items():
        assert times["count"] == told["client"]["completed"], name
        assert scrape(f"allosaur_flow_{name}_seconds_count", profile="_") == times["count"]
        total_us = times["average_us"] * times["count"]
        assert scrape(f"allosaur_flow_{name}_seconds_sum", profile="_") * 1e6 == pytest.approx(
            total_us, rel=0.01
        )
        assert times["min_us"] <= times["p50_us"] <= times["p99_us"] <= times["p99_9_us"] <= times["max_us"]


def test_more_templates_than_have_series_are_added_up() -> None:
    many = 260
    with LocalServer(http=0, stateful=True) as server, server.client() as flows:
        flows.reset()
        flows.load_profile(web({1000 + number: f"t{number}" for number in range(many)}, connections=1))
        flows.start()
        flows.wait_on_traffic()
        read = scraped(server)
    series = "allosaur_tcps_connects_total"
    of_clients = [labels for labels in read.labels(series) if labels["side"] == "client"]
    names = {labels["template"] for labels in of_clients}
    assert names == {"(others)"} | {f"t{number}" for number in range(256)}
    counts = {labels["template"]: read(series, **labels) for labels in of_clients}
    assert counts["(others)"] == many - 256
    assert sum(counts.values()) == many


def test_the_server(scrape: Scrape, rpc: Rpc) -> None:
    version = rpc.streams("get_version")
    built = f"{version['build_date']} {version['build_time']}"
    assert scrape("allosaur_build_info", version=version["version"], built=built) == 1
    uptime = rpc.streams("get_status")["uptime_s"]
    assert 0 < scrape("allosaur_uptime_seconds") <= uptime
    for thread in ("data-0", "receive-0"):
        busy = scrape("allosaur_thread_busy_seconds_total", thread=thread)
        assert 0 < busy <= scrape("allosaur_thread_seconds_total", thread=thread)
    threads = scrape.labels("allosaur_thread_seconds_total")
    assert len(threads) == 1 + rpc.streams("get_system_info")["dp_core_count"]
    for port in rpc.streams("get_status")["ports"]:
        info = next(one for one in scrape.labels("allosaur_port_info") if one["port"] == str(port["port_id"]))
        assert info["mode"] == port["mode"]
        for profile in port["profiles"]:
            if profile.get("streams"):
                about = {"port": port["port_id"], "profile": profile["profile_id"]}
                assert scrape("allosaur_profile_streams", **about) == profile["streams"]
                assert scrape("allosaur_profile_running", **about) == 0


def test_health_and_what_else_there_is(server: LocalServer) -> None:
    assert get(server, "/healthz") == ("text/plain; charset=utf-8", "ok\n")
    index = get(server, "/")[1]
    assert "/metrics" in index and "/healthz" in index
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(server, "/no/such")


def test_who_does_not_know_openmetrics_gets_the_same_values(server: LocalServer, scrape: Scrape) -> None:
    kind, text = get(server, "/metrics", accept="text/plain")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    families = list(plain.text_string_to_metric_families(text))
    assert {family.type for family in families} == {"counter", "gauge", "histogram", "summary"}
    samples = [sample for family in families for sample in family.samples]
    values = {(sample.name, labels_of(sample)): sample.value for sample in samples}
    assert values.keys() == scrape.values.keys()
    assert still(values) == still(scrape.values)


def test_names_that_users_give_come_through() -> None:
    counted = {**stream(64, stats=STLFlowStats(7)).to_json(), "next_stream_id": -1}
    with LocalServer(http=0) as server, zmq.Context() as context, context.socket(zmq.REQ) as socket:
        rpc = Rpc(server, socket)
        who = {"user": "me", "session_id": 1, "force": False}
        handlers = [rpc.streams("acquire", port_id=port, **who) for port in (0, 1)]

        def change(method: str, port: int, profile: str, **params: object) -> Scrape:
            rpc.streams(method, port_id=port, handler=handlers[port], profile_id=profile, **params)
            return scraped(server)

        of_odd = {"port": 0, "profile": ODD_NAME}
        read = change("add_stream", 0, ODD_NAME, stream_id=1, stream=counted)
        assert read("allosaur_profile_streams", **of_odd) == 1
        assert read("allosaur_stream_packets_total", **of_odd, stream=7, direction="tx") == 0
        read = change("add_stream", 1, "b", stream_id=1, stream=counted)
        of_both = {"stream": 7, "profile": f"{ODD_NAME},b"}
        assert read("allosaur_stream_missed_packets_total", **of_both, port=0) == 0
        read = change("remove_all_streams", 0, ODD_NAME)
        assert read("allosaur_stream_missed_packets_total", stream=7, profile="b", port=1) == 0
        read = change("remove_stream", 1, "b", stream_id=1)
        assert read.labels("allosaur_stream_packets_total") == []


def test_a_port_that_is_taken_is_named(server: LocalServer) -> None:
    assert server.http_url is not None
    taken = server.http_url.removeprefix("http://")
    with (
        pytest.raises(Exception, match=rf"cannot listen on http://{taken}: .*--http"),
        LocalServer(http=taken),
    ):
        pass


def test_without_the_option_there_is_no_http() -> None:
    with LocalServer() as server:
        assert server.http_url is None


def test_promtool_finds_nothing_but_names_that_are_given(server: LocalServer) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    text = get(server, "/metrics", accept="text/plain")[1]
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    # The names of counters of flows are TRex's.
    ours = [
        line
        for line in done.stderr.splitlines()
        if line and not re.match("allosaur_(user_counter|err_s_nf_throttled)", line)
    ]
    assert ours == []
    assert "allosaur_user_counter_A_total" in done.stderr, "it has read the text"


def test_prometheus_reads_the_same(
    server: LocalServer, scrape: Scrape, prometheus: Callable[[LocalServer], Callable[[str], list[Any]]]
) -> None:
    query = prometheus(server)
    read = {}
    for series in query('{job="allosaur", __name__=~"allosaur_.*"}'):
        labels = {name: value for name, value in series["metric"].items() if name not in ("instance", "job")}
        read[labels.pop("__name__"), frozenset(labels.items())] = float(series["value"][1])
    assert read.keys() == scrape.values.keys()
    assert still(read) == still(scrape.values)


def still(values: Mapping[Any, float]) -> dict[Any, float]:
    """The values that do not change when nothing is sent."""
    return {key: value for key, value in values.items() if not re.search("uptime|thread_|foreign", key[0])}


def test_the_guide_shows_all_that_is_there(scrape: Scrape, metric_rows: Mapping[str, Any]) -> None:
    shown = metric_rows
    real = {}
    for family in scrape.families.values():
        suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
        labels = [frozenset(sample.labels) - {"le"} for sample in family.samples]
        real[family.name + suffix] = (family.type, labels)
    for name, (kind, labels) in real.items():
        assert shown[name].kind == kind, name
        assert set(labels) <= {shown[name].labels}, name
    # Of the rest only what goes wrong, what needs an add-on, programs over TLS (which the last test has), and
    # what needs emulated clients (--emu, as tests/emulation/test_metrics.py starts it) is not there.
    # Sessions of BGP are in tests/ports/test_routes.py.
    missing = shown.keys() - {name for name, (_, labels) in real.items() if labels}
    assert not [name for name in missing if shown[name].always]
    others = "tcps_|udps_|app_latency|allosaur_emulation_|allosaur_bgp_|allosaur_tls_|flow_handshake"
    others += "|allosaur_http_|flow_response"
    assert all(re.search(others, name) for name in missing), missing


def test_the_rpc_tells_the_same_series_as_the_page(server: LocalServer) -> None:
    """``get_metrics`` in either mode, and /metrics: all metrics, their series and values."""
    where = {"server": server.host, "sync_port": server.rpc_port, "async_port": server.pub_port}
    with STLClient(**where) as streams, ASTFClient(**where) as flows:
        readings = [streams.get_metrics(), flows.get_metrics()]
    page = scraped(server)
    assert readings[0].families == readings[1].families
    assert readings[1].time_ns > readings[0].time_ns
    for metrics in readings:
        assert set(page.families) <= set(metrics.families)
        told = {
            (f"{name}{suffix}", labels): value
            for name, family in metrics.families.items()
            for labels, suffix, value in samples_of(family, metrics)
        }
        expected = {name: value for name, value in page.values.items() if not name[0].endswith("_bucket")}
        assert told.keys() == expected.keys()
        for (name, labels), value in told.items():
            assert value == expected[name, labels] or moves(name), (name, labels)
        buckets = metrics.value("allosaur_port_frame_bytes", port=1, direction="rx")
        assert isinstance(buckets, Distribution)
        for bound, count in buckets.buckets:
            assert page("allosaur_port_frame_bytes_bucket", port=1, direction="rx", le=bound) == count


def moves(name: str) -> bool:
    """Whether a metric changes while nothing is sent."""
    clocks = ("uptime_seconds", "thread_seconds_total", "thread_busy_seconds_total")
    return name.removeprefix("allosaur_") in clocks


def samples_of(
    family: MetricFamily, metrics: Metrics
) -> Iterator[tuple[frozenset[tuple[str, str]], str, float]]:
    """The samples of a metric as the page has them: labels, what follows the name, value."""
    for values, value in metrics.series(family.name).items():
        pairs = zip(family.labels, values, strict=True)
        labels = frozenset((name, text) for name, text in pairs if text)
        if isinstance(value, Distribution):
            yield labels, "_count", value.count
            yield labels, "_sum", value.sum
        else:
            yield labels, {"counter": "_total", "info": "_info"}.get(family.kind, ""), value


def test_metrics_are_asked_for_by_the_beginnings_of_their_names(server: LocalServer) -> None:
    where = {"server": server.host, "sync_port": server.rpc_port, "async_port": server.pub_port}
    with STLClient(**where) as client:
        some = client.get_metrics(["allosaur_port_pa", "allosaur_stream_latency_s"])
        assert set(some.families) == {"allosaur_port_packets", "allosaur_stream_latency_seconds"}
        assert some.value("allosaur_port_packets", port=1, direction="rx") == 2 * PACKETS
        family = some.families["allosaur_port_packets"]
        assert (family.kind, family.unit, family.labels) == ("counter", "packets", ("port", "direction"))
        times = some.value("allosaur_stream_latency_seconds", stream=8, profile="_")
        assert isinstance(times, Distribution)
        assert times.count == PACKETS
        assert times.min is not None and times.max is not None
        assert times.min <= times.quantiles[0.5] <= times.quantiles[0.999] <= times.max
        with pytest.raises(KeyError, match="no label way: it has port, direction"):
            some.value("allosaur_port_packets", way="rx")
        with pytest.raises(KeyError, match="needs the label direction"):
            some.value("allosaur_port_packets", port=1)
        # A name that no metric has is no error: the names of all say which is meant.
        none = client.get_metrics(["allosaur_prot_"])
        assert not none.families and not none.values
        short = client.get_metrics(["allosaur_port_packets"], families=False)
        assert not short.families
        assert short.series("allosaur_port_packets") == some.series("allosaur_port_packets")
        with pytest.raises(STLError, match=r"prefixes\[1\]"):
            client.get_metrics(["allosaur_", 7])  # type: ignore[list-item]


def test_programs_over_tls_have_metrics_of_handshakes() -> None:
    profile = ASTFProfile.load(HTTPS_GET, rate=20)
    with LocalServer(http=0, stateful=True) as server, server.client() as flows:
        flows.reset()
        flows.load_profile(profile)
        flows.start(duration=1)
        flows.wait_on_traffic()
        page = scraped(server)
    for side in SIDES:
        handshakes = page("allosaur_tls_handshakes_total", profile="_", side=side, kind="full")
        assert handshakes == page("allosaur_flow_handshake_seconds_count", profile="_") > 0
    assert not any(
        name.startswith(("allosaur_tls_failures", "allosaur_tls_alerts")) for name, _ in page.values
    )
