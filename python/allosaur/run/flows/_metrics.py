"""What thresholds of a run of flows may be about: metrics of both sides, of templates and of latency."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from allosaur.report import HTTP_CLASSES
from allosaur.run._thresholds import (
    BPS,
    COUNT,
    EACH,
    FPS,
    SHARE,
    TIME,
    Document,
    Labels,
    Metric,
    Reading,
    Thresholds,
    refuse_unknown,
    unmeasured,
)
from allosaur.run.flows._counts import FlowPlan

if TYPE_CHECKING:
    from allosaur import ASTFClient, ASTFProfile, ASTFProfileLight

Row = Mapping[str, Any]
Value = Callable[[Row], float | None]
_LATENCY, _PERCENTILE, _MISSED, _CLIENTS, _MESSAGES = "latency", "percentile", "missed", "clients", "messages"
_OUTCOMES, _BYTES, _RESPONSES, _TIMED = "outcomes", "bytes", "responses", "times"
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


def _of(value: Value, per_second: bool = False) -> Callable[[Document, Labels], list[Reading]]:
    """Return what reads a value of the run, or of templates."""

    def read(document: Document, labels: Labels) -> list[Reading]:
        found = []
        for where, row in _rows(document, labels):
            counted = value(row)
            if per_second and counted is not None:
                counted = counted / document["duration_s"] if document["duration_s"] else None
            found.append(Reading(counted, where))
        return found

    return read


def _share(part: Value, whole: Value) -> Value:
    def value(row: Row) -> float | None:
        counted, of = part(row), whole(row)
        return None if counted is None or not of else 100 * counted / of

    return value


def _client(name: str) -> Value:
    return lambda row: float(row["clients"][name])


def _ended(outcome: str, is_share: bool) -> Callable[[Document, Labels], list[Reading]]:
    """Return what reads how flows ended, of each side that has some; of clients alone, who got no data.

    A server of TRex's does not tell; there, those that found no other end stand for unanswered ones.
    """
    sides = ("client",) if outcome == "unanswered" else ("client", "server")

    def read(document: Document, labels: Labels) -> list[Reading]:
        asked = labels.get(_SIDE, EACH)
        found = []
        for where, row in _rows(document, labels):
            for side in sides:
                begun = float(row[f"{side}s"]["begun_flows"])
                if not begun or asked not in (EACH, side):
                    continue
                counted = _ends_of(row, side, outcome)
                if counted is not None and is_share:
                    counted = 100 * counted / begun
                found.append(Reading(counted, ", ".join(filter(None, (where, f"{side}s")))))
        return found

    return read


def _ends_of(row: Row, side: str, outcome: str) -> float | None:
    if row["outcomes"] is not None:
        return float(row["outcomes"][f"{side}s"][outcome])
    if outcome != "unanswered":
        return None
    clients = row["clients"]
    return float(max(clients["begun_flows"] - clients["connected_flows"], 0))


def _http(name: str) -> Value:
    return lambda row: None if row["outcomes"] is None else float(row["outcomes"]["clients"][f"http_{name}"])


def _responses(row: Row) -> float | None:
    """Return how many answers there were; of none, the share of a class is 0."""
    counted = [_http(name)(row) for name in HTTP_CLASSES]
    known = [count for count in counted if count is not None]
    return max(sum(known), 1.0) if known else None


def _time(time: str, key: str) -> Callable[[Document, Labels], list[Reading]]:
    return lambda document, _: [Reading(document["times"].get(time, {}).get(key))]


def _count(name: str) -> Value:
    return lambda row: None if row[name] is None else float(row[name])


def _errors(document: Document, labels: Labels) -> list[Reading]:
    """Return how often something went wrong; counters of bytes are read by their name only."""
    counter, side = labels.get(_COUNTER, EACH), labels.get(_SIDE, EACH)
    found = []
    for where, row in _rows(document, labels):
        counted = [
            one["count"]
            for one in row["errors"]
            if side in (EACH, one["side"])
            and (counter == one["counter"] or (counter == EACH and "byte" not in one["counter"]))
        ]
        found.append(Reading(float(sum(counted)), where))
    return found


def _latency(key: str) -> Callable[[Document, Labels], list[Reading]]:
    def read(document: Document, labels: Labels) -> list[Reading]:
        asked = labels.get(_PORT, EACH)
        rows = [(port, row) for port, row in document["latency"].items() if asked in (EACH, port)]
        return [Reading(row.get(key) if row["received"] else None, f"port {port}") for port, row in rows]

    return read


def _echo_loss(document: Document, labels: Labels) -> list[Reading]:
    asked = labels.get(_PORT, EACH)
    return [
        Reading(
            100 * max(row["sent"] - row["received"], 0) / row["sent"] if row["sent"] else None, f"port {port}"
        )
        for port, row in document["latency"].items()
        if asked in (EACH, port)
    ]


def _bits(side: str, way: str) -> Metric:
    return Metric(
        f"{side}.{way}.bps",
        BPS,
        f"bits of data a second that {side} {'sent' if way == 'tx' else 'received'}",
        _of(lambda row: 8 * float(row[side][f"{way}_data_bytes"]), per_second=True),
        (_TEMPLATE,),
    )


def _both_of(outcome: str, meaning: str) -> tuple[Metric, Metric]:
    """Return a share and a count of flows that ended so."""
    is_of_clients = outcome == "unanswered"
    labels = (_TEMPLATE,) if is_of_clients else (_SIDE, _TEMPLATE)
    needs = _CLIENTS if is_of_clients else _OUTCOMES
    more = (labels, needs, outcome, outcome == "completed")
    return (
        Metric(outcome, SHARE, f"{meaning}, of all", _ended(outcome, True), *more),
        Metric(f"{outcome}.flows", COUNT, "the same, counted", _ended(outcome, False), *more),
    )


def _http_metrics(name: str) -> tuple[Metric, Metric]:
    what = "that begin with no status line of HTTP/1" if name == "other" else f"of class {name}"
    check = f"http.{name}"
    share, counted = _of(_share(_http(name), _responses)), _of(_http(name))
    return (
        Metric(check, SHARE, f"responses {what}, of all", share, (_TEMPLATE,), _RESPONSES, check),
        Metric(f"{check}.responses", COUNT, "the same, counted", counted, (_TEMPLATE,), _RESPONSES, check),
    )


_PERCENTILES = (
    ("min", "min", "the shortest"),
    ("average", "average", "the average"),
    ("p50", "p50", "half of the flows kept to it"),
    ("p90", "p90", "90 % of the flows kept to it"),
    ("p99", "p99", "99 % of the flows kept to it"),
    ("p99.9", "p99_9", "99.9 % of the flows kept to it"),
    ("max", "max", "the longest"),
)
_TIMES_MEAN = {
    "connect": "time from a client's SYN to the connection",
    "first_byte": "time from the beginning of a client's flow to its first data",
    "program": "time from the beginning of a client's flow to the end of its program",
}


METRICS: tuple[Metric, ...] = (
    Metric(
        "missed",
        SHARE,
        "flows that were not opened in time, of those offered",
        _of(_share(_count("missed_flows"), _count("offered_flows"))),
        needs=_MISSED,
        decides="missed",
    ),
    Metric("missed.flows", COUNT, "the same, counted", _of(_count("missed_flows")), (), _MISSED, "missed"),
    *(one for name, meaning in _ENDS for one in _both_of(name, meaning)),
    *(one for name in HTTP_CLASSES for one in _http_metrics(name)),
    Metric(
        "errors",
        COUNT,
        "error counters together, but those of bytes; or one, by its name",
        _errors,
        (_COUNTER, _SIDE, _TEMPLATE),
        decides="errors",
    ),
    Metric(
        "lost.messages",
        COUNT,
        "UDP messages that were sent and not received, both ways",
        _of(_count("lost_messages")),
        needs=_MESSAGES,
        decides="messages",
    ),
    Metric(
        "lost.bytes",
        COUNT,
        "bytes of TCP that programs sent and that were not received, both ways",
        _of(_count("lost_bytes")),
        needs=_BYTES,
        decides="bytes",
    ),
    Metric(
        "opened.flows",
        COUNT,
        "flows that clients opened",
        _of(_client("begun_flows")),
        (_TEMPLATE,),
        _CLIENTS,
    ),
    Metric(
        "connected.flows",
        COUNT,
        "flows of clients of which both ends knew",
        _of(_client("connected_flows")),
        (_TEMPLATE,),
        _CLIENTS,
    ),
    Metric("offered.fps", FPS, "flows offered a second", _of(_count("offered_fps")), (), _CLIENTS),
    Metric(
        "connected.fps",
        FPS,
        "flows of clients connected a second",
        _of(_client("connected_flows"), per_second=True),
        (_TEMPLATE,),
        _CLIENTS,
    ),
    *(_bits(side, way) for side in ("clients", "servers") for way in ("tx", "rx")),
    *(
        Metric(f"{time}.{name}", TIME, f"{what}: {meaning}", _time(time, f"{key}_us"), (), _TIMED)
        for time, what in _TIMES_MEAN.items()
        for name, key, meaning in _PERCENTILES
    ),
    Metric(
        "latency.loss",
        SHARE,
        "echo requests without an answer, of those sent",
        _echo_loss,
        (_PORT,),
        _LATENCY,
    ),
    *(
        Metric(f"latency.{name}", TIME, meaning, _latency(f"{key}_us"), (_PORT,), needs)
        for name, key, meaning, needs in (
            ("min", "min", "shortest time of an echo request", _LATENCY),
            ("average", "average", "average time", _LATENCY),
            ("p50", "p50", "time that half of them kept to", _PERCENTILE),
            ("p90", "p90", "time that 90 % of them kept to", _PERCENTILE),
            ("p99", "p99", "time that 99 % of them kept to", _PERCENTILE),
            ("p99.9", "p99_9", "time that 99.9 % of them kept to", _PERCENTILE),
            ("max", "max", "longest time of an echo request", _LATENCY),
            ("jitter", "jitter", "jitter", _LATENCY),
        )
    ),
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
        if needs in (_LATENCY, _PERCENTILE) and not plan.latency_pps:
            raise unmeasured(one, "latency is not measured; -l PPS measures it, such as -l 100")
        if needs == _PERCENTILE and "get_status" not in supported:
            raise unmeasured(one, "a server of TRex's does not tell it")
        if needs == _MISSED and "get_flow_rates" not in supported:
            raise unmeasured(one, "a server of TRex's does not tell it")
        if needs in (_OUTCOMES, _RESPONSES, _TIMED) and "get_flow_outcomes" not in supported:
            raise unmeasured(one, "a server of TRex's does not tell it")
        if needs in (_CLIENTS, _MISSED, _RESPONSES, _TIMED, _BYTES) and plan.servers_only:
            raise unmeasured(one, "with --servers-only no client opens flows")
        if needs == _MESSAGES and (not has_udp or plan.servers_only):
            raise unmeasured(one, "no UDP messages go between clients and servers of this run")
