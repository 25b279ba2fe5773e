"""What `stats` of a stateful console shows: counters of flows and latency, with TRex's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from allosaur.cli._answer import Answer
from allosaur.cli.console._tables import joined, titled
from allosaur.cli.top import _outcomes

if TYPE_CHECKING:
    from allosaur import ASTFClient

Stats = Mapping[str, Mapping[str, Any]]
_LATENCY_ERRORS = (
    "m_unsup_prot",
    "m_no_magic",
    "m_no_id",
    "m_seq_error",
    "m_length_error",
    "m_no_ipv4_option",
)
_PERCENTILES = (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p99_9"))
_NO_LATENCY = "No latency is measured: `latency start`, or `start -l PPS`."


def counters(stats: Stats, title: str, name: str, order: Sequence[str] = ()) -> Answer:
    """Return the counters of both sides, in the server's order where it is known."""
    client, server = stats["client"], stats["server"]
    names = [one for one in dict.fromkeys([*order, *client, *server]) if one in client or one in server]
    rows = [[one, _shown(client.get(one, 0)), _shown(server.get(one, 0))] for one in names]
    return Answer(titled(title, ["", "client", "server"], rows), {name: stats})


def traffic(client: ASTFClient, with_zero: bool, pid: str | None) -> Answer:
    """Return the counters of one profile, or of the sum of all."""
    everything = client.get_traffic_stats(False, pid or "_", is_sum=pid is None)
    stats = everything
    if not with_zero:
        stats = client.get_traffic_stats(True, pid or "_", is_sum=pid is None)
    title = f"Traffic stats of Profile ID : {pid or 'all'}"
    counted = counters(stats, title, "traffic", list(everything["client"]))
    ended = _outcomes.read(client, pid)
    if ended is None:
        return counted
    rows = [[label, *map(_shown, values)] for label, values in ended.rows()]
    text = titled("How flows ended", ["", "client", "server"], rows)
    return joined(counted, Answer(text, {"outcomes": ended.to_json()}))


def latency(client: ASTFClient) -> Answer:
    """Return what the echo requests of each port measured, in microseconds."""
    stats = client.get_latency_stats()
    ports = dict(sorted(stats.items()))
    rows = [
        ["TX pkts", *(str(one["stats"]["m_tx_pkt_ok"]) for one in ports.values())],
        ["RX pkts", *(str(one["stats"]["m_pkt_ok"]) for one in ports.values())],
    ]
    for name, key in (("Max latency", "max_usec"), ("Avg latency", "s_avg"), *_PERCENTILES):
        values = [one["hist"].get(key) if one["hist"].get("cnt", 1) else None for one in ports.values()]
        if any(key in one["hist"] for one in ports.values()):
            rows.append([name, *("-" if value is None else f"{value:g}" for value in values)])
    rows.append(["Jitter", *(str(one["stats"]["m_jitter"]) for one in ports.values())])
    errors = [sum(one["stats"].get(key, 0) for key in _LATENCY_ERRORS) for one in ports.values()]
    rows.append(["Errors", *map(str, errors)])
    impossible = [one["stats"].get("impossible_times", 0) for one in ports.values()]
    if any(impossible):
        rows.append(["Impossible times", *map(str, impossible)])
    text = titled("Latency Statistics (usec)", ["Port ID:", *map(str, ports)], rows)
    return Answer(
        text if ports else _NO_LATENCY, {"latency": {str(port): one for port, one in ports.items()}}
    )


def latency_histogram(client: ASTFClient) -> Answer:
    """Return the histogram of each port."""
    ports = dict(sorted(client.get_latency_stats().items()))
    columns = []
    for one in ports.values():
        histogram = {item["key"]: item["val"] for item in one["hist"].get("histogram") or []}
        below = one["hist"].get("cnt", 0) - one["hist"].get("high_cnt", 0)
        columns.append({**histogram, **({0: below} if below else {})})
    buckets = sorted({key for one in columns for key in one}, reverse=True)
    rows = [["<10" if key < 10 else str(key), *(str(one.get(key, "")) for one in columns)] for key in buckets]
    text = titled("Latency Histogram", ["Port ID:", *map(str, ports)], rows)
    return Answer(
        text if ports else _NO_LATENCY, {"latency": {str(port): one for port, one in ports.items()}}
    )


def latency_counters(client: ASTFClient) -> Answer:
    """Return all counters of latency that are not zero."""
    ports = dict(sorted(client.get_latency_stats().items()))
    rows: list[list[str]] = []
    for part in ("stats", "hist"):
        names = sorted({name for one in ports.values() for name in one[part]})
        for name in names:
            values = [one[part].get(name, 0) for one in ports.values()]
            if any(values) and not any(isinstance(value, (dict, list)) for value in values):
                rows.append([name, *map(_shown, values)])
        rows += [["--", *("" for _ in ports)]] if part == "stats" else []
    text = titled("Latency Counters", ["Port ID:", *map(str, ports)], rows)
    return Answer(
        text if ports else _NO_LATENCY, {"latency": {str(port): one for port, one in ports.items()}}
    )


def _shown(value: Any) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.2f}"
    return str(int(value)) if isinstance(value, float) else str(value)
