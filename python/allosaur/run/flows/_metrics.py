"""What thresholds of a run of flows may be about: metrics of both sides, of templates and of latency."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from allosaur.report import HTTP_CLASSES, SIDES
from allosaur.run._metrics import (
    LATENCY,
    MISSED,
    PERCENTILE,
    TELLS_NOT,
    Row,
    Value,
    Values,
    at,
    latency,
    share_and_count,
    times,
)
from allosaur.run._thresholds import (
    BPS,
    COUNT,
    EACH,
    FPS,
    SHARE,
    Document,
    Labels,
    Metric,
    Thresholds,
    refuse_unknown,
    unmeasured,
)
from allosaur.run.flows._counts import FlowPlan

if TYPE_CHECKING:
    from allosaur import ASTFClient, ASTFProfile, ASTFProfileLight

_CLIENTS, _MESSAGES, _OUTCOMES = "clients", "messages", "outcomes"
_BYTES, _RESPONSES, _TIMED = "bytes", "responses", "times"
_TEMPLATE, _PORT, _COUNTER, _SIDE = "template", "port", "counter", "side"
_ENDS = (
    ("completed", "flows whose program came to its end"),
    ("reset", "flows that the peer reset"),
    ("closed_early", "flows that the peer closed before their end"),
    ("timed_out", "flows that timed out"),
    ("refused", "flows that were refused"),
    ("cut_off", "flows that the end of the test cut off"),
    ("aborted", "flows that were given up here"),
    ("unanswered", "flows that waited for data and got none"),
)
"""How flows may end, with what the metric of each counts."""


def _rows(document: Document, labels: Labels) -> Iterator[tuple[str, Row]]:
    """Return the counters of a run, or those of the template groups that the labels name."""
    template = labels.get(_TEMPLATE)
    if template is None:
        yield "", document
        return
    for name, row in document["groups"].items():
        if template in (EACH, name):
            yield f"template {name}", row


def _sides(document: Document, labels: Labels, sides: tuple[str, ...] = SIDES) -> Iterator[tuple[str, Row]]:
    """Return the counters of each side that has flows, with its name and what it began."""
    asked = labels.get(_SIDE, EACH)
    for where, row in _rows(document, labels):
        for side in sides:
            begun = row[f"{side}s"]["begun_flows"]
            if begun and asked in (EACH, side):
                yield ", ".join(filter(None, (where, f"{side}s"))), {**row, "side": side, "begun": begun}


def _ended(outcome: str) -> Value:
    """Return what reads how many flows of a side ended so; of clients alone, who got no data.

    A server of TRex's does not tell; there, those that found no other end stand for unanswered ones.
    """

    def value(row: Row) -> float | None:
        if row["outcomes"] is not None:
            return float(row["outcomes"][f"{row['side']}s"][outcome])
        if outcome != "unanswered":
            return None
        clients = row["clients"]
        return float(max(clients["begun_flows"] - clients["connected_flows"], 0))

    return value


def _http(name: str) -> Value:
    return at("outcomes", "clients", f"http_{name}")


def _responses(row: Row) -> float | None:
    """Return how many answers there were; of none, the share of a class is 0."""
    counted = [_http(name)(row) for name in HTTP_CLASSES]
    known = [count for count in counted if count is not None]
    return max(sum(known), 1.0) if known else None


def _errors(document: Document, labels: Labels) -> Iterator[tuple[str, Row]]:
    """Return how often something went wrong; counters of bytes are read by their name only."""
    counter, side = labels.get(_COUNTER, EACH), labels.get(_SIDE, EACH)
    for where, row in _rows(document, labels):
        counted = [
            one["count"]
            for one in row["errors"]
            if side in (EACH, one["side"])
            and (counter == one["counter"] or (counter == EACH and "byte" not in one["counter"]))
        ]
        yield where, {"count": sum(counted)}


def _times(time: str, document: Document, _: Labels) -> Iterator[tuple[str, Row]]:
    yield "", document["times"].get(time, {})


def _echoes(document: Document, labels: Labels) -> Iterator[tuple[str, Row]]:
    """Return what was counted of echo requests of each port."""
    asked = labels.get(_PORT, EACH)
    for port, row in document["latency"].items():
        if asked in (EACH, port):
            yield f"port {port}", row


def _echo_times(document: Document, labels: Labels) -> Iterator[tuple[str, Row]]:
    for where, row in _echoes(document, labels):
        yield where, row if row["received"] else {}


def _bits(side: str, way: str) -> Metric:
    meaning = f"bits of data a second that {side} {'sent' if way == 'tx' else 'received'}"
    read = Values(_rows, at(side, f"{way}_data_bytes", times=8), per_second=True)
    return Metric(f"{side}.{way}.bps", BPS, meaning, read, (_TEMPLATE,))


def _both_of(outcome: str, meaning: str) -> tuple[Metric, Metric]:
    """Return a share and a count of flows that ended so."""
    is_of_clients = outcome == "unanswered"
    rows = partial(_sides, sides=("client",)) if is_of_clients else _sides
    return share_and_count(
        outcome,
        "flows",
        f"{meaning}, of all",
        Values(rows, _ended(outcome), at("begun")),
        labels=(_TEMPLATE,) if is_of_clients else (_SIDE, _TEMPLATE),
        needs=_CLIENTS if is_of_clients else _OUTCOMES,
        decides=outcome,
        gains=outcome == "completed",
    )


def _http_metrics(name: str) -> tuple[Metric, Metric]:
    what = "that begin with no status line of HTTP/1" if name == "other" else f"of class {name}"
    check, read = f"http.{name}", Values(_rows, _http(name), _responses)
    more = ((_TEMPLATE,), _RESPONSES, check)
    return share_and_count(check, "responses", f"responses {what}, of all", read, *more)


_TIMES = {
    "min": "the shortest",
    "average": "the average",
    "p50": "half of the flows kept to it",
    "p90": "90 % of the flows kept to it",
    "p99": "99 % of the flows kept to it",
    "p99.9": "99.9 % of the flows kept to it",
    "max": "the longest",
}
_TIMES_MEAN = {
    "connect": "time from a client's SYN to the connection",
    "first_byte": "time from the beginning of a client's flow to its first data",
    "program": "time from the beginning of a client's flow to the end of its program",
}
_MISSED = "flows that were not opened in time, of those offered"
_MISSED_READ = Values(_rows, at("missed_flows"), at("offered_flows"))
_ERRORS = "error counters together, but those of bytes; or one, by its name"
_LOST_MESSAGES = "UDP messages that were sent and not received, both ways"
_LOST_BYTES = "bytes of TCP that programs sent and that were not received, both ways"
_ECHO_LOSS = "echo requests without an answer, of those sent"
_OPENED = Values(_rows, at("clients", "begun_flows"))
_CONNECTED = Values(_rows, at("clients", "connected_flows"))
_CONNECTED_RATE = Values(_rows, at("clients", "connected_flows"), per_second=True)
_OF_CLIENTS = ((_TEMPLATE,), _CLIENTS)


def _lost(row: Row) -> float:
    return float(max(row["sent"] - row["received"], 0))


METRICS: tuple[Metric, ...] = (
    *share_and_count("missed", "flows", _MISSED, _MISSED_READ, (), MISSED, "missed"),
    *(one for name, meaning in _ENDS for one in _both_of(name, meaning)),
    *(one for name in HTTP_CLASSES for one in _http_metrics(name)),
    Metric(
        "errors", COUNT, _ERRORS, Values(_errors, at("count")), (_COUNTER, _SIDE, _TEMPLATE), "", "errors"
    ),
    Metric(
        "lost.messages", COUNT, _LOST_MESSAGES, Values(_rows, at("lost_messages")), (), _MESSAGES, "messages"
    ),
    Metric("lost.bytes", COUNT, _LOST_BYTES, Values(_rows, at("lost_bytes")), (), _BYTES, "bytes"),
    Metric("opened.flows", COUNT, "flows that clients opened", _OPENED, *_OF_CLIENTS),
    Metric("connected.flows", COUNT, "flows of clients of which both ends knew", _CONNECTED, *_OF_CLIENTS),
    Metric("offered.fps", FPS, "flows offered a second", Values(_rows, at("offered_fps")), (), _CLIENTS),
    Metric("connected.fps", FPS, "flows of clients connected a second", _CONNECTED_RATE, *_OF_CLIENTS),
    *(_bits(side, way) for side in ("clients", "servers") for way in ("tx", "rx")),
    *(
        one
        for time, what in _TIMES_MEAN.items()
        for one in times(
            time,
            {name: f"{what}: {meaning}" for name, meaning in _TIMES.items()},
            partial(_times, time),
            needs=_TIMED,
        )
    ),
    Metric("latency.loss", SHARE, _ECHO_LOSS, Values(_echoes, _lost, at("sent")), (_PORT,), LATENCY),
    *latency("an echo request", "them", _echo_times, (_PORT,)),
)
"""All metrics of flows."""


def refuse_unmeasured(
    thresholds: Thresholds, client: ASTFClient, plan: FlowPlan, profile: ASTFProfile | ASTFProfileLight
) -> None:
    """Raise :class:`CommandError` for a threshold of what this run will not know, before it starts."""
    supported = client.get_server_supported_cmds()
    fields = profile.to_json()
    has_udp = any(program.get("stream") is False for program in fields.get("program_list", ()))
    for one in thresholds:
        needs = one.metric.needs
        refuse_unknown(one, _TEMPLATE, fields.get("tg_names") or ())
        refuse_unknown(one, _SIDE, ("client", "server"))
        refuse_unknown(one, _PORT, map(str, client.ports))
        if needs in (LATENCY, PERCENTILE) and not plan.latency_pps:
            raise unmeasured(one, "latency is not measured; -l PPS measures it, such as -l 100")
        if needs == PERCENTILE and "get_status" not in supported:
            raise unmeasured(one, TELLS_NOT)
        if needs == MISSED and "get_flow_rates" not in supported:
            raise unmeasured(one, TELLS_NOT)
        if needs in (_OUTCOMES, _RESPONSES, _TIMED) and "get_flow_outcomes" not in supported:
            raise unmeasured(one, TELLS_NOT)
        if needs in (_CLIENTS, MISSED, _RESPONSES, _TIMED, _BYTES) and plan.servers_only:
            raise unmeasured(one, "with --servers-only no client opens flows")
        if needs == _MESSAGES and (not has_udp or plan.servers_only):
            raise unmeasured(one, "no UDP messages go between clients and servers of this run")
