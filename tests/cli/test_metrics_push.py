"""`allosaur metrics push`: what a server counts reaches a collector of OpenTelemetry's as it is."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLClient, STLFlowLatencyStats, STLPktBuilder, STLStream, STLTXSingleBurst
from allosaur.cli.metrics import _otlp, _push
from allosaur.server import LocalServer
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "metrics.md"
PACKETS = 200
START_NS = 10**18
SECOND_NS = 10**9


class Collector(ThreadingHTTPServer):
    """A collector that reads requests as OpenTelemetry's own definitions have them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Post)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.requests: list[Any] = []
        self.headers: list[Any] = []
        self.paths: list[str] = []
        self.answers: list[tuple[int, dict[str, Any]]] = []
        """What the next requests are answered with; all others with 200."""
        self.came = threading.Condition()

    def wait_for(self, requests: int) -> None:
        with self.came:
            assert self.came.wait_for(lambda: len(self.requests) >= requests, timeout=60)


class Post(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Content-Type"] == "application/json"
        assert self.headers["Content-Encoding"] == "gzip"
        # It knows no field that it is not told of, and no value of another type.
        message = json_format.Parse(gzip.decompress(body), ExportMetricsServiceRequest())
        code, answer = self.server.answers.pop(0) if self.server.answers else (200, {})
        # Before the answer: who has it may look at once.
        with self.server.came:
            self.server.requests.append(message)
            self.server.headers.append(self.headers)
            self.server.paths.append(self.path)
            self.server.came.notify_all()
        text = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def page(binary: str) -> Iterator[str]:
    """Where a server shows what it counted."""
    packet = STLPktBuilder(pkt=Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12) / bytes(60))
    mode = STLTXSingleBurst(pps=10_000, total_pkts=PACKETS)
    stream = STLStream(packet=packet, mode=mode, flow_stats=STLFlowLatencyStats(7))
    with LocalServer(http=0, binary=binary) as server:
        where = {"server": server.host, "sync_port": server.rpc_port, "async_port": server.pub_port}
        with STLClient(**where) as client:
            client.reset(ports=[0, 1])
            client.add_streams(stream, ports=[0])
            client.start(ports=[0])
            client.wait_on_traffic(ports=[0])
            while client.get_pgid_stats([7])["latency"].get(7, {}).get("latency", {}).get("average") is None:
                pass
            assert server.http_url is not None
            yield server.http_url


def values(message: Any) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """All numbers of a request, under the names and labels of Prometheus."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    (resource,) = message.resource_metrics
    (scope,) = resource.scope_metrics
    for metric in scope.metrics:
        for point in getattr(metric, metric.WhichOneof("data")).data_points:
            labels = {one.key: one.value.string_value for one in point.attributes}
            if metric.HasField("histogram") or metric.HasField("summary"):
                found[f"{metric.name}_sum", frozenset(labels.items())] = point.sum
                found[f"{metric.name}_count", frozenset(labels.items())] = point.count
            if metric.HasField("histogram"):
                below = 0
                bounds = [*map(repr, point.explicit_bounds), "+Inf"]
                assert len(bounds) == len(point.bucket_counts)
                for bound, count in zip(bounds, point.bucket_counts, strict=True):
                    below += count
                    found[f"{metric.name}_bucket", frozenset({**labels, "le": bound}.items())] = below
            elif not metric.HasField("summary"):
                value = getattr(point, point.WhichOneof("value"))
                found[metric.name, frozenset(labels.items())] = value
    return found


def test_a_collector_gets_what_the_server_counted(
    allosaur: Callable[..., Any], page: str, collector: Collector
) -> None:
    done = allosaur("metrics", "push", "--otlp", collector.url, "--from", page, "--once")
    assert (done.code, done.err) == (0, "")
    (message,) = collector.requests
    assert collector.paths == ["/v1/metrics"]
    request = urllib.request.Request(f"{page}/metrics", headers={"Accept": "application/openmetrics-text"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read().decode()
    moving = ("allosaur_uptime", "allosaur_thread")
    wanted = {
        (one.name, frozenset((name, value) for name, value in one.labels.items() if value)): one.value
        for family in openmetrics.text_string_to_metric_families(text)
        for one in family.samples
    }
    sent = values(message)
    assert sent.keys() == wanted.keys()
    still = {key: value for key, value in wanted.items() if not key[0].startswith(moving)}
    assert {key: value for key, value in sent.items() if key in still} == still
    assert sent["allosaur_port_packets_total", frozenset({("port", "0"), ("direction", "tx")})] == PACKETS
    assert f"Sent {sum(1 for _ in points_of(message))} series." in done.out

    about = {one.key: one.value.string_value for one in message.resource_metrics[0].resource.attributes}
    assert about["service.name"] == "allosaur"
    assert about["service.instance.id"] == page.removeprefix("http://")
    for metric in message.resource_metrics[0].scope_metrics[0].metrics:
        kind = getattr(metric, metric.WhichOneof("data"))
        if metric.WhichOneof("data") in ("sum", "histogram"):
            assert kind.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
        for point in kind.data_points:
            if metric.name.endswith("_total"):
                assert kind.is_monotonic
                assert 0 < point.start_time_unix_nano < point.time_unix_nano
        assert metric.description
    units = {metric.name: metric.unit for metric in message.resource_metrics[0].scope_metrics[0].metrics}
    assert units["allosaur_stream_latency_seconds"] == "s"
    assert units["allosaur_port_frame_bytes"] == "By"


def points_of(message: Any) -> Iterator[Any]:
    for metric in message.resource_metrics[0].scope_metrics[0].metrics:
        yield from getattr(metric, metric.WhichOneof("data")).data_points


@contextlib.contextmanager
def pushing(*options: str) -> Iterator[subprocess.Popen[str]]:
    """The command; Ctrl-C ends it also where a shell started the tests in the background."""
    command = [sys.executable, "-m", "allosaur.cli", "metrics", "push", *options]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_it_goes_on_when_the_collector_is_away_and_comes_back(page: str, collector: Collector) -> None:
    partial = {"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "old"}}
    collector.answers = [(503, {}), (200, partial)]
    with pushing("--otlp", collector.url, "--from", page, "--interval", "100ms") as process:
        collector.wait_for(4)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(60) == 130
    lines = said.splitlines()
    assert lines[0].startswith(f"warning: {collector.url}/v1/metrics answers 503")
    assert lines[1] == "warning: the collector rejects 3 values: old"
    assert lines[2:] == ["It goes on."]
    # A series keeps its beginning, and its time goes on.
    first, last = (next(points_of(one)) for one in (collector.requests[0], collector.requests[-1]))
    assert first.start_time_unix_nano == last.start_time_unix_nano
    assert first.time_unix_nano < last.time_unix_nano


def test_ctrl_c_ends_it_while_the_collector_does_not_answer(page: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pushing("--otlp", url, "--from", page) as process:
            connection, _ = silent.accept()
            with connection:
                connection.recv(1)
                process.send_signal(signal.SIGINT)
                assert process.wait(60) == 130
            assert process.stderr is not None
            # It would have said so, had it waited for an answer.
            assert process.stderr.read() == ""


def test_the_environment_gives_further_headers(
    allosaur: Callable[..., Any], page: str, collector: Collector
) -> None:
    variables = {"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20YTpi, x-lab=7"}
    words = ("metrics", "push", "--otlp", f"{collector.url}/custom/path", "--from", page, "--once")
    assert allosaur(*words, variables=variables).code == 0
    assert collector.paths == ["/custom/path"]
    assert collector.headers[0]["Authorization"] == "Basic YTpi"
    assert collector.headers[0]["x-lab"] == "7"
    for wrong in ("Authorization", "a b=c", "=x", "x=%0d%0aHost: other"):
        ended = allosaur(*words, variables={"OTEL_EXPORTER_OTLP_HEADERS": wrong})
        ended.refused("OTEL_EXPORTER_OTLP_HEADERS", "NAME=VALUE")


def test_what_is_wrong_is_said(allosaur: Callable[..., Any], page: str, collector: Collector) -> None:
    push = ("metrics", "push", "--once")
    allosaur(*push).refused("--otlp")
    allosaur("metrics").refused("ACTION")
    for url in ("127.0.0.1:4318", "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999"):
        allosaur(*push, "--otlp", url).refused("--otlp", url)
    allosaur(*push, "--otlp", collector.url, "--from", "http://[::1").refused("--from")
    allosaur(*push, "--otlp", collector.url, "--interval", "1ms").refused("--interval", "100ms")
    # Nobody is there, and somebody else.
    nobody = "http://127.0.0.1:1"
    allosaur(*push, "--otlp", collector.url, "--from", nobody).failed(3, nobody, "--http")
    allosaur(*push, "--otlp", nobody, "--from", page).failed(3, nobody, "collector")
    allosaur(*push, "--otlp", collector.url, "--from", collector.url).failed(3, "501", "not metrics")
    allosaur(*push, "--otlp", collector.url, "--from", f"{page}/healthz").failed(3, "not a server's metrics")
    allosaur(*push, "--otlp", page, "--from", page).failed(3, "refuses", "405")
    collector.answers = [(503, {})]
    allosaur(*push, "--otlp", collector.url, "--from", page).failed(3, "503")
    assert len(collector.requests) == 1


def test_the_commands_of_the_guide_work(
    allosaur: Callable[..., Any], page: str, collector: Collector
) -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", GUIDE.read_text(), re.M | re.S)
    lines = [line.split() for kind, block in blocks if not kind for line in block.splitlines()]
    port = page.rpartition(":")[2]
    start, curl, push = [[word.replace("4502", port) for word in line] for line in lines]
    # The server runs already, on a port of its own.
    assert start == ["allosaur", "server", "--http", port]
    assert curl[0] == "curl"
    with urllib.request.urlopen(curl[1], timeout=60) as answer:
        assert b"allosaur_uptime_seconds" in answer.read()
    assert push.pop(0) == "allosaur"
    assert "http://127.0.0.1:4318" in push
    push = [collector.url if word == "http://127.0.0.1:4318" else word for word in push]
    assert allosaur(*push, "--once").code == 0


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LABELS = st.lists(TEXT, max_size=3)


@given(LABELS, st.integers(0, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False))
def test_labels_and_numbers_are_sent_as_they_are(names: list[str], number: float) -> None:
    escaped = [name.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"') for name in names]
    labels = ",".join(f'l{n}="{name}"' for n, name in enumerate(escaped))
    text = f'# TYPE a gauge\n# HELP a What \\"it\\" is\na{{{labels}}} {number}\n# EOF\n'
    document = _otlp.Readings("a:1").document(_push.read(text.encode()), START_NS)
    message = json_format.ParseDict(document, ExportMetricsServiceRequest())
    (metric,) = message.resource_metrics[0].scope_metrics[0].metrics
    (point,) = metric.gauge.data_points
    told = {one.key: one.value.string_value for one in point.attributes}
    assert told == {f"l{n}": name for n, name in enumerate(names) if name}
    assert getattr(point, point.WhichOneof("value")) == number
    assert (point.WhichOneof("value") == "as_int") == isinstance(number, int)
    assert metric.description == 'What "it" is'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# TYPE a gauge\na 1\n",
        "<html>\n# EOF\n",
        "# TYPE a gauge\na one\n# EOF\n",
        '# TYPE a gauge\na{x="1} 1\n# EOF\n',
        "# KIND a gauge\n# EOF\n",
        "# TYPE a histogram\na_bucket 1\n# EOF\n",
        "# EOF\na 1\n",
        "\xff",
    ],
)
def test_what_is_no_openmetrics_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        _push.read(text.encode("latin-1"))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_is_more_than_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        _push.read(f"# TYPE a gauge\na{text}\n# EOF\n".encode())


def reading(uptime_s: float, count: int, name: str = "one") -> list[Metric]:
    text = (
        "# TYPE allosaur_uptime_seconds gauge\n"
        f"allosaur_uptime_seconds {uptime_s}\n"
        "# TYPE a counter\n"
        f'a_total{{profile="{name}"}} {count}\n'
        "# EOF\n"
    )
    return _push.read(text.encode())


def begun(readings: _otlp.Readings, families: list[Metric], now_ns: int) -> int:
    """When the counter of a reading began, in seconds after the server."""
    document = readings.document(families, now_ns)
    metrics = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    (point,) = metrics[1]["sum"]["dataPoints"]
    return (int(point["startTimeUnixNano"]) - START_NS) // SECOND_NS


def test_a_counter_that_falls_has_begun_anew() -> None:
    readings = _otlp.Readings("a:1")

    def at(second: int, count: int, uptime_s: float | None = None, name: str = "one") -> int:
        uptime_s = second if uptime_s is None else uptime_s
        return begun(readings, reading(uptime_s, count, name), START_NS + second * SECOND_NS)

    assert [at(10, 5), at(11, 9), at(12, 9)] == [0, 0, 0]
    # It began again somewhen after the reading before.
    assert [at(13, 3), at(14, 4)] == [12, 12]
    # One that was not there has counted since the server began.
    assert at(15, 100, name="two") == 0
    # Another server: all begins with it.
    assert [at(20, 500, uptime_s=2), at(21, 600, uptime_s=3)] == [18, 18]
