"""`--fail-if`: how thresholds are written, what they compare, and which checks they take the place of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from allosaur.cli._errors import CommandError
from allosaur.report._counters import PortCounters
from allosaur.report._flow_counters import FlowCounters, SideCounters
from allosaur.report._streams import StreamCounters, StreamLatency
from allosaur.run import Verdict, _summary, _thresholds, judge, judge_by
from allosaur.run._metrics import Metric
from allosaur.run._thresholds import Thresholds
from allosaur.run.flows import _metrics as flow_metrics
from allosaur.run.flows._counts import FlowPlan
from allosaur.run.flows._result import FlowResult
from allosaur.run.streams import _metrics as stream_metrics
from allosaur.run.streams._counts import Plan
from allosaur.run.streams._groups import Grouping, Row
from allosaur.run.streams._result import StreamResult

STREAMS, FLOWS = stream_metrics.METRICS, flow_metrics.METRICS
LATENCY = StreamLatency(10.0, 20.0, 400.0, 3.0, 18.0, 50.0, 120.0, 300.0)


def read(*words: str, metrics: tuple[Metric, ...] = STREAMS) -> Thresholds:
    return _thresholds.read(words, metrics)


def run(voip_lost: int = 2, bulk_lost: int = 50, missed: int = 0, duplicates: int = 0) -> StreamResult:
    """A run of two streams of port 0: voip, which is measured, and bulk; 1,000 packets each."""
    streams = [
        StreamCounters(0, ["voip"], 1, 1000, 64_000, 1000 - voip_lost, 0, {1: 1000 - voip_lost}, voip_lost,
                       missed_packets=missed, out_of_order_packets=7, latency=LATENCY),
        StreamCounters(0, ["bulk, red"], 2, 1000, 1_500_000, 1000 - bulk_lost, 0, {1: 1000 - bulk_lost},
                       bulk_lost, duplicates, missed_packets=0),
    ]  # fmt: skip
    rows = [Row(0, one.pg_id, one.names, [0]) for one in streams]
    counters = {
        0: PortCounters(tx_packets=2000, tx_bytes=1_564_000, missed_packets=missed),
        1: PortCounters(rx_packets=2000 - voip_lost - bulk_lost, missed_packets=0),
    }
    return StreamResult(
        Plan([0], "1", 2.0, [0, 1]), counters, {}, elapsed_s=2.0, grouping=Grouping(rows), streams=streams
    )


def judged(outcome: StreamResult, *words: str) -> Verdict:
    return judge_by(read(*words), outcome, _summary.document(outcome, judge(outcome)))


def value(outcome: StreamResult, text: str) -> float | None:
    (checked,) = judged(outcome, text).thresholds
    return checked.reading.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loss>1%", 2.6),
        ("loss.packets>1", 52),
        ("loss{stream=voip}>1%", 0.2),
        ('loss{stream="bulk, red"}>1%', 5.0),
        ("loss{stream=*}>1%", 5.0),
        ("loss{port=0}>1%", 2.6),
        ("missed>1%", 0.0),
        ("duplicates.packets>1", 0),
        ("out_of_order.packets>1", 7),
        ("tx.packets>1", 2000),
        ("tx.packets{port=0, stream=voip}>1", 1000),
        ("rx.packets{port=1}>1", 1948),
        ("tx.pps>1pps", 1000.0),
        ("tx.bps{stream=voip}>1bps", 256_000.0),
        ("offered.pps>1pps", 1000.0),
        ("latency.p99>1us", 120.0),
        ("latency.p99.9>1us", 300.0),
        ("latency.min{stream=voip}>1us", 10.0),
    ],
)
def test_a_metric_of_streams_is_what_the_document_says(text: str, expected: float) -> None:
    assert value(run(), text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("latency.p99>0.1ms", 100.0),
        ("latency.p99 >= 250 ns", 0.25),
        ("latency.p99>1s", 1e6),
        ("latency.p99>5µs", 5.0),
        ("latency.p99>0", 0.0),
        ("tx.pps<1.5Mpps", 1.5e6),
        ("tx.bps<10gbps", 1e10),
        ("loss>.01%", 0.01),
        ("loss.packets>2k", 2000.0),
    ],
)
def test_limits_have_units(text: str, limit: float) -> None:
    assert read(text)[0].limit == pytest.approx(limit)


@pytest.mark.parametrize(
    ("operator", "holds"),
    [(">", True), (">=", False), ("<", True), ("<=", False), ("==", False), ("!=", True)],
)
def test_operators(operator: str, holds: bool) -> None:
    assert judged(run(0, 0), f"tx.packets{operator}2000").ok is holds


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("imix", ["'imix' is not a threshold", "'loss>0.01%'", "PROFILE stands before"]),
        ("loss>", ["is not a threshold"]),
        ("los>1%", ["no metric 'los'", "did you mean loss?", "latency.p99"]),
        ("latncy.p99>1us", ["did you mean latency.p99?"]),
        ("loss>1", ["loss needs a unit", "0.01%"]),
        ("latency.p99>100", ["needs a unit", "100us"]),
        ("latency.p99>1pps", ["'pps' is no unit of latency.p99"]),
        ("loss{prot=0}>1%", ["no label 'prot'", "port, stream"]),
        ("other.packets{stream=a}>1", ["no label 'stream'", "it has port"]),
        ("loss{port}>1%", ["is no list of labels"]),
        ("@/nowhere/limits", ["/nowhere/limits", "No such file"]),
    ],
)
def test_what_is_wrong_says_what_is_right(text: str, words: list[str]) -> None:
    with pytest.raises(CommandError) as caught:
        read(text)
    assert caught.value.exit_code == 2
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_file_has_one_in_each_line(tmp_path: Path) -> None:
    limits = tmp_path / "limits.txt"
    limits.write_text("# of the access network\nloss>0.01%\n\nlatency.p99>1ms  # of all\n", encoding="utf-8")
    assert [one.text for one in read("tx.pps<1kpps", f"@{limits}")] == [
        "tx.pps<1kpps", "loss>0.01%", "latency.p99>1ms",
    ]  # fmt: skip
    limits.write_text("loss>1%\nlos>1%\n", encoding="utf-8")
    with pytest.raises(CommandError, match=r"limits\.txt:2 'los>1%'"):
        read(f"@{limits}")


def test_a_threshold_of_loss_decides_in_place_of_the_check() -> None:
    verdict = judged(run(), "loss>3%")
    assert verdict.ok
    assert "52 packets were sent and not received (2.6 %)" in verdict.summary
    assert verdict.summary.endswith("which the thresholds allow; the threshold holds: loss is 2.6 %")
    assert verdict.built_in["ok"]
    assert len(verdict.built_in["allowed"]) == 1
    crossed = judged(run(), "loss>2%", "latency.p99>100us")
    assert not crossed.ok
    assert crossed.reasons == [
        "threshold loss>2% was crossed: loss is 2.6 %, and may not be > 2 %",
        "threshold latency.p99>100us was crossed: latency.p99 is 120 µs (stream voip, port 0), "
        "and may not be > 100 µs",
    ]
    assert crossed.built_in["ok"]


def test_other_thresholds_leave_the_check_as_it_is() -> None:
    verdict = judged(run(), "latency.p99>1ms")
    assert not verdict.ok
    assert verdict.reasons == judge(run()).reasons
    assert [one.ok for one in verdict.thresholds] == [True]
    assert judged(run(0, 0), "latency.p99>1ms").summary.endswith(
        "the threshold holds: latency.p99 is 120 µs (stream voip, port 0)"
    )


def test_a_label_decides_on_what_has_it_only() -> None:
    bulk = 'loss{stream="bulk, red"}>10%'
    assert not judged(run(), bulk).ok, "voip lost packets too"
    assert judged(run(voip_lost=0), bulk).ok
    assert judged(run(), bulk, "loss{stream=voip}>1%").ok
    assert judged(run(), "loss{stream=*}>5%").ok
    assert not judged(run(), "loss{stream=*}>4%").ok
    assert judged(run(), "loss{port=0}>3%").ok


@pytest.mark.parametrize(
    ("outcome", "text"),
    [(run(0, 0, missed=5), "missed>1%"), (run(0, 0, duplicates=3), "duplicates.packets>5")],
)
def test_other_checks_are_decided_on_alike(outcome: StreamResult, text: str) -> None:
    assert not judge(outcome).ok
    assert judged(outcome, text).ok
    assert not judged(outcome, "loss>1%").ok


def test_what_was_not_measured_does_not_hold() -> None:
    lost = run()
    silent = [replace_latency(one) for one in lost.streams]
    verdict = judged(
        StreamResult(**{**vars(lost), "streams": silent}), "loss>10%", "latency.p99>1s", "latency.p99<1s"
    )
    assert [one.ok for one in verdict.thresholds] == [True, False, False]
    assert "threshold latency.p99>1s: latency.p99 was not measured" in verdict.summary


def replace_latency(one: StreamCounters) -> StreamCounters:
    return StreamCounters(**{**vars(one), "latency": None})


def test_a_run_that_was_cut_short_proves_nothing() -> None:
    verdict = judged(StreamResult(**{**vars(run(0, 0)), "cut_short": "somebody took port 0"}), "loss>1%")
    assert not verdict.ok
    assert [one.reading.value for one in verdict.thresholds] == [None]


def flow_run(**changes: Any) -> FlowResult:
    """A run of 100 flows, of which two found no other end and two were reset; 4 more were missed."""
    client = SideCounters(begun_flows=100, connected_flows=98, tx_data_bytes=1000, rx_data_bytes=250_000)
    server = SideCounters(begun_flows=98, connected_flows=98, tx_data_bytes=250_000, rx_data_bytes=1000)
    errors = {"client": {"tcps_conndrops": 2, "tcps_sndrexmitbyte": 900}}
    counters = FlowCounters(client, server, 4, errors)
    group = FlowCounters(SideCounters(begun_flows=50, connected_flows=49), SideCounters(), None, errors)
    echo = {"sent": 10, "received": 9, "min_us": 5.0, "average_us": 6.0, "max_us": 9.0, "jitter_us": 1.0}
    return FlowResult(
        FlowPlan(), counters, [], {0: {**echo, "p99_us": 8.0}}, {"web": group}, elapsed_s=2.0, **changes
    )


def flows_judged(*words: str) -> Verdict:
    outcome = flow_run()
    document = _summary.document(outcome, judge(outcome))
    return judge_by(read(*words, metrics=FLOWS), outcome, document)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("missed>1%", 100 * 4 / 104),
        ("missed.flows>1", 4),
        ("unanswered>1%", 2.0),
        ("unanswered{template=web}>1%", 2.0),
        ("unanswered.flows{template=*}>1", 1),
        ("errors>1", 2),
        ("errors{counter=tcps_sndrexmitbyte}>1", 900),
        ("errors{side=server}>1", 0),
        ("opened.flows>1", 100),
        ("connected.fps>1cps", 49.0),
        ("offered.fps>1fps", 52.0),
        ("servers.tx.bps>1bps", 1e6),
        ("latency.p99>1us", 8.0),
        ("latency.loss{port=0}>1%", 10.0),
    ],
)
def test_a_metric_of_flows_is_what_the_document_says(text: str, expected: float) -> None:
    (checked,) = flows_judged(text).thresholds
    assert checked.reading.value == pytest.approx(expected)


def test_thresholds_of_flows_decide_on_checks() -> None:
    allowing = ["missed>5%", "unanswered>5%", "errors>10"]
    assert flows_judged(*allowing).ok
    for without in allowing:
        assert not flows_judged(*(one for one in allowing if one != without)).ok, without
    counter = "errors{counter=tcps_conndrops}>5"
    assert not flows_judged(*allowing[:2], counter).ok, "the other counter still fails it"
    assert flows_judged(*allowing[:2], counter, "errors{counter=tcps_sndrexmitbyte}>1k").ok
    assert not flows_judged("missed>5%", "unanswered{template=web}>5%", "errors>10").ok


def test_every_metric_can_be_read() -> None:
    outcome = run()
    document = _summary.document(outcome, judge(outcome))
    of_flows = flow_run()
    flow_document = _summary.document(of_flows, judge(of_flows))
    for metrics, one in ((STREAMS, document), (FLOWS, flow_document)):
        assert len({metric.name for metric in metrics}) == len(metrics)
        for metric in metrics:
            example = f"{metric.name}>{metric.unit.example}"
            assert read(example, metrics=metrics)[0].metric is metric
            assert len(metric.read(one, {})) in (1, 2), metric.name
