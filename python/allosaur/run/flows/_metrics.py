"""What thresholds of a run of flows may be about: metrics of both sides, of templates and of latency."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from allosaur.report._flow_counters import SIDES
from allosaur.report._flow_outcomes import HTTP_CLASSES
from allosaur.run._metrics import (
    BPS,
    COUNT,
    EACH,
    FPS,
    LATENCY,
    MISSED,
    PERCENTILE,
    SHARE,
    TELLS_NOT,
    Document,
    Labels,
    Metric,
    Row,
    Rows,
    at,
    latency,
    times,
    whole,
    with_count,
)
from allosaur.run._thresholds import Thresholds, refuse_unknown, unmeasured
from allosaur.run.flows._counts import FlowPlan

if TYPE_CHECKING:
    from allosaur import ASTFClient, ASTFProfile, ASTFProfileLight

_CLIENTS, _MESSAGES, _OUTCOMES = "clients", "messages", "outcomes"
_BYTES, _RESPONSES, _TIMED = "bytes", "responses", "times"
_TEMPLATE, _PORT, _COUNTER, _SIDE = "template", "port", "counter", "side"
_ENDS = {
    "completed": "flows whose program came to its end",
    "reset": "flows that the peer reset",
    "closed_early": "flows that the peer closed before their end",
    "timed_out": "flows that timed out",
    "refused": "flows that were refused",
    "cut_off": "flows that the end of the test cut off",
    "aborted": "flows that were given up here",
    "unanswered": "flows that waited for data and got none",
}
"""How flows may end, with what the metric of each counts."""
_TIMES = {
    "connect": "time from a client's SYN to the connection",
    "handshake": "time of the handshake that secures a client's connection, such as TLS",
    "first_byte": "time from the beginning of a client's flow to its first data",
    "program": "time from the beginning of a client's flow to the end of its program",
    "response_begin": "time from a request of HTTP to the first byte of its response",
    "response": "time from a request of HTTP to the last byte of its response",
}
_TIMES_OF_FLOWS = {
    "min": "the shortest",
    "average": "the average",
    "p50": "half of the flows kept to it",
    **{f"p{share}": f"{share} % of the flows kept to it" for share in ("90", "99", "99.9")},
    "max": "the longest",
}


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


def _ended(outcome: str, row: Row) -> float | None:
    """Return how many flows of a side ended so; of clients alone, who got no data.

    A server of TRex's does not tell; there, those that found no other end stand for unanswered ones.
    """
    if row["outcomes"] is not None:
        return float(row["outcomes"][f"{row['side']}s"][outcome])
    if outcome != "unanswered":
        return None
    clients = row["clients"]
    return float(max(clients["begun_flows"] - clients["connected_flows"], 0))


def _responses(row: Row) -> float | None:
    """Return how many answers there were; of none, the share of a class is 0."""
    counted = [at(row, f"outcomes.clients.http_{name}") for name in HTTP_CLASSES]
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


def _lost(row: Row) -> float:
    return float(max(row["sent"] - row["received"], 0))


def _end(name: str, meaning: str) -> Metric:
    """Return the share of flows that ended so."""
    where: tuple[Rows, tuple[str, ...], str] = (_sides, (_SIDE, _TEMPLATE), _OUTCOMES)
    if name == "unanswered":
        where = (partial(_sides, sides=("client",)), (_TEMPLATE,), _CLIENTS)
    read, gains = partial(_ended, name), name == "completed"
    return Metric(name, SHARE, f"{meaning}, of all", read, *where, name, "begun", gains=gains)


def _http(name: str) -> Metric:
    what = "that begin with no status line of HTTP/1" if name == "other" else f"of class {name}"
    meaning, value = f"responses {what}, of all", f"outcomes.clients.http_{name}"
    check = f"http.{name}"
    return Metric(check, SHARE, meaning, value, _rows, (_TEMPLATE,), _RESPONSES, check, _responses)


def _bits(side: str, way: str) -> Metric:
    meaning = f"bits of data a second that {side} {'sent' if way == 'tx' else 'received'}"
    value = f"{side}.{way}_data_bytes"
    return Metric(f"{side}.{way}.bps", BPS, meaning, value, _rows, (_TEMPLATE,), times=8, per_second=True)


def _times_metrics(time: str, what: str) -> tuple[Metric, ...]:
    meanings = {name: f"{what}: {meaning}" for name, meaning in _TIMES_OF_FLOWS.items()}
    return times(time, meanings, partial(_times, time), needs=_TIMED)


_MISSED = "flows that were not opened in time, of those offered"
_ERRORS = "error counters together, but those of bytes; or one, by its name"
_LOST_MESSAGES = "UDP messages that were sent and not received, both ways"
_LOST_BYTES = "bytes of TCP that programs sent and that were not received, both ways"
_OPENED = "flows that clients opened"
_CONNECTED = "flows of clients of which both ends knew"
_CONNECTED_RATE = "flows of clients connected a second"
_ECHO_LOSS = "echo requests without an answer, of those sent"
_OF_CLIENTS = (_rows, (_TEMPLATE,), _CLIENTS)
METRICS: tuple[Metric, ...] = (
    *with_count(
        "flows",
        Metric("missed", SHARE, _MISSED, "missed_flows", whole, (), MISSED, "missed", "offered_flows"),
    ),
    *(one for name, meaning in _ENDS.items() for one in with_count("flows", _end(name, meaning))),
    *(one for name in HTTP_CLASSES for one in with_count("responses", _http(name))),
    Metric("errors", COUNT, _ERRORS, "count", _errors, (_COUNTER, _SIDE, _TEMPLATE), decides="errors"),
    Metric("lost.messages", COUNT, _LOST_MESSAGES, "lost_messages", needs=_MESSAGES, decides="messages"),
    Metric("lost.bytes", COUNT, _LOST_BYTES, "lost_bytes", needs=_BYTES, decides="bytes"),
    Metric("opened.flows", COUNT, _OPENED, "clients.begun_flows", *_OF_CLIENTS),
    Metric("connected.flows", COUNT, _CONNECTED, "clients.connected_flows", *_OF_CLIENTS),
    Metric("offered.fps", FPS, "flows offered a second", "offered_fps", needs=_CLIENTS),
    Metric("connected.fps", FPS, _CONNECTED_RATE, "clients.connected_flows", *_OF_CLIENTS, per_second=True),
    *(_bits(side, way) for side in ("clients", "servers") for way in ("tx", "rx")),
    *(one for time, what in _TIMES.items() for one in _times_metrics(time, what)),
    Metric("latency.loss", SHARE, _ECHO_LOSS, _lost, _echoes, (_PORT,), LATENCY, of="sent"),
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
    names = {
        _TEMPLATE: list(fields.get("tg_names") or ()),
        _SIDE: SIDES,
        _PORT: [*map(str, client.ports)],
    }
    is_told = {
        PERCENTILE: "get_status" in supported,
        MISSED: "get_flow_rates" in supported,
        **dict.fromkeys((_OUTCOMES, _RESPONSES, _TIMED), "get_flow_outcomes" in supported),
    }

    def why_not(needs: str) -> str:
        if needs in (LATENCY, PERCENTILE) and not plan.latency_pps:
            return "latency is not measured; -l PPS measures it, such as -l 100"
        if not is_told.get(needs, True):
            return TELLS_NOT
        if needs in (_CLIENTS, MISSED, _RESPONSES, _TIMED, _BYTES) and plan.servers_only:
            return "with --servers-only no client opens flows"
        if needs == _MESSAGES and (not has_udp or plan.servers_only):
            return "no UDP messages go between clients and servers of this run"
        return ""

    for one in thresholds:
        for label, there in names.items():
            refuse_unknown(one, label, there)
        if why := why_not(one.metric.needs):
            raise unmeasured(one, why)
