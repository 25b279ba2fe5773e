"""What `stats` and `portattr` show, with the rows of TRex's tables: scripts look for their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format
from allosaur.cli._answer import Answer
from allosaur.cli.top._machine_view import ATTRIBUTES, attribute

if TYPE_CHECKING:
    from allosaur import STLClient

_PREAMBLE_AND_GAP_BITS = 20 * 8
Row = tuple[str, Callable[[Mapping[str, Any]], str]]


def rate(name: str, unit: str) -> Callable[[Mapping[str, Any]], str]:
    """Return what shows a rate of this name."""
    return lambda values: _format.rate(values.get(name, 0), unit)


def count(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Return what shows a count of this name, plain: programs read it."""
    return lambda values: str(values.get(name, 0))


def _nothing(values: Mapping[str, Any]) -> str:
    return ""


_PORT_ROWS: tuple[Row, ...] = (
    ("--", _nothing),
    ("Tx bps L2", rate("tx_bps", "bps")),
    ("Tx bps L1", rate("tx_bps_L1", "bps")),
    ("Tx pps", rate("tx_pps", "pps")),
    ("Line Util.", lambda values: f"{values.get('tx_util', 0):.2f} %"),
    ("---", _nothing),
    ("Rx bps", rate("rx_bps", "bps")),
    ("Rx pps", rate("rx_pps", "pps")),
    ("----", _nothing),
    *((name, count(name)) for name in ("opackets", "ipackets", "obytes", "ibytes")),
    ("tx-pkts", rate("opackets", "pkts")),
    ("rx-pkts", rate("ipackets", "pkts")),
    ("tx-bytes", rate("obytes", "B")),
    ("rx-bytes", rate("ibytes", "B")),
    ("-----", _nothing),
    ("oerrors", count("oerrors")),
    ("ierrors", count("ierrors")),
)


def titled(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table under its title."""
    return f"{title}\n\n{_format.table(header, rows)}\n"


def port_stats(client: STLClient, ports: Sequence[int]) -> Answer:
    """Return the counters and rates of ports."""
    stats = client.get_stats(list(ports), only_given=True)
    columns: list[Mapping[str, Any]] = [stats[port] for port in ports]
    columns += [_summed(stats, ports)] if len(ports) > 1 else []
    header = ["port", *map(str, ports), *(["total"] if len(ports) > 1 else [])]
    rows = [*_identities(client, ports, len(columns))]
    rows += [[name, *(show(values) for values in columns)] for name, show in _PORT_ROWS]
    fields = {str(port): stats[port] for port in ports}
    return Answer(titled("Port Statistics", header, rows), {"ports": fields})


def global_stats(client: STLClient) -> Answer:
    """Return what the server as a whole does."""
    whole, info = client.get_stats()["global"], client.get_server_system_info()
    where, version = client.get_connection_info(), client.get_server_version()
    cores, per_pair = info.get("dp_core_count"), info.get("dp_core_count_per_port")
    rx = f"{whole['rx_cpu_util']:.2f} % / {_format.rate(whole['rx_core_pps'], 'pps')}"
    l1_bps = whole["tx_bps"] + whole["tx_pps"] * _PREAMBLE_AND_GAP_BITS
    lines = (
        ("connection", f"{where['server']}, Port {where['sync_port']}"),
        ("version", f"{version.get('mode')} @ {version.get('version')}"),
        ("cpu_util.", f"{whole['cpu_util']:.2f} % @ {cores} cores ({per_pair} per dual port)"),
        ("rx_cpu_util.", rx),
        ("total_cps.", _format.rate(whole["tx_cps"], "cps")),
        ("total_tx_L2", _format.rate(whole["tx_bps"], "bps")),
        ("total_tx_L1", _format.rate(l1_bps, "bps")),
        ("total_rx", _format.rate(whole["rx_bps"], "bps")),
        ("total_pps", _format.rate(whole["tx_pps"], "pps")),
        ("drop_rate", _format.rate(whole["rx_drop_bps"], "bps")),
        ("queue_full", f"{whole['queue_full']} pkts"),
    )
    text = "\n".join(f"{name:<12} : {value}" for name, value in lines)
    return Answer(f"Global Statistics\n\n{text}\n", {"global": whole})


def port_status(client: STLClient, ports: Sequence[int]) -> Answer:
    """Return what ports are."""
    infos = {str(info["index"]): info for info in client.get_port_info(list(ports))}
    rows = [[title, *(attribute(info, name) for info in infos.values())] for title, name in ATTRIBUTES]
    return Answer(titled("Port Status", ["port", *infos], rows), {"ports": infos})


def xstats(client: STLClient, ports: Sequence[int], with_zero: bool) -> Answer:
    """Return the counters that the drivers have."""
    counters = {port: client.get_xstats(port) for port in ports}
    names = list(dict.fromkeys(name for one in counters.values() for name in one))
    rows = [[name, *(str(one.get(name, "")) for one in counters.values())] for name in names]
    shown = [row for row in rows if with_zero or any(value not in ("0", "") for value in row[1:])]
    header = ["Name:", *(f"Port {port}:" for port in ports)]
    return Answer(titled("Xstats", header, shown), {"xstats": {str(one): counters[one] for one in ports}})


def cpu(client: STLClient) -> Answer:
    """Return how busy the data cores are."""
    cores = client.get_util_stats().get("cpu", [])
    rows = []
    for number, core in enumerate(cores):
        history = list(core.get("history") or [])
        ports = "/".join(str(port) for port in core.get("ports") or [] if port != -1)
        latest = f"{history[0]} %" if history else "-"
        rows.append([str(number), ports or "-", latest, *(str(value) for value in history[1:6])])
    width = max((len(row) for row in rows), default=3)
    rows = [row + [""] * (width - len(row)) for row in rows]
    header = ["Thread", "Ports", "Latest", *(f"-{n}" for n in range(1, width - 2))]
    return Answer(titled("Cpu Util(%)", header, rows), {"cpu": cores})


def mbuf(client: STLClient) -> Answer:
    """Return how much of the packet memory is used."""
    pools = client.get_util_stats().get("mbuf_stats", {})
    rows = []
    for socket, sizes in pools.items():
        for size, (free, total) in sizes.items():
            rows.append([socket, size, str(total), str(total - free)])
    text = titled("Mbuf Util", ["socket", "size", "total", "used"], rows)
    return Answer(text if rows else "The server has no pools of packet memory.", {"mbuf": pools})


def groups(client: STLClient) -> Answer:
    """Return what is counted of packet groups."""
    stats = client.get_pgid_stats()["flow_stats"]
    ids = [pgid for pgid in stats if isinstance(pgid, int)]
    rows: tuple[tuple[str, str, str | None], ...] = (
        *(("Tx pps", "tx_pps", "pps"), ("Tx bps L2", "tx_bps", "bps"), ("Tx bps L1", "tx_bps_l1", "bps")),
        *(("---", "", None), ("Rx pps", "rx_pps", "pps"), ("Rx bps", "rx_bps", "bps"), ("----", "", None)),
        *(("opackets", "tx_pkts", None), ("ipackets", "rx_pkts", None)),
        *(("obytes", "tx_bytes", None), ("ibytes", "rx_bytes", None)),
    )
    shown = [[name, *(_total(stats[one], key, unit) for one in ids)] for name, key, unit in rows]
    text = titled("Streams Statistics", ["PG ID", *map(str, ids)], shown)
    nothing = "No packet group is counted: streams need flow_stats."
    return Answer(text if ids else nothing, {"flow_stats": {str(one): stats[one] for one in ids}})


def latency(client: STLClient) -> Answer:
    """Return what latency streams measure, in microseconds."""
    stats = client.get_pgid_stats()
    measured = {pgid: one for pgid, one in stats["latency"].items() if isinstance(pgid, int)}
    counted = stats["flow_stats"]
    rows = [
        ["TX pkts", *(_total(counted.get(one, {}), "tx_pkts", None) for one in measured)],
        ["RX pkts", *(_total(counted.get(one, {}), "rx_pkts", None) for one in measured)],
    ]
    names = (
        *(("Max latency", "total_max"), ("Min latency", "total_min"), ("Avg latency", "average")),
        *(("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p99_9")),
        *(("Last max", "last_max"), ("Jitter", "jitter")),
    )
    for name, key in names:
        values = [one["latency"].get(key) if _has_times(one) else None for one in measured.values()]
        if any(key in one["latency"] for one in measured.values()):
            rows.append([name, *("-" if value is None else f"{value:g}" for value in values)])
    for name, key in (("Errors", "seq_too_low"),):
        rows.append(
            [
                name,
                *(str(one["err_cntrs"][key] + one["err_cntrs"]["seq_too_high"]) for one in measured.values()),
            ]
        )
    impossible = [one["err_cntrs"].get("impossible_times", 0) for one in measured.values()]
    if any(impossible):
        rows.append(["Impossible times", *map(str, impossible)])
    text = titled("Latency Statistics (usec)", ["PG ID", *map(str, measured)], rows)
    fields = {str(pgid): one for pgid, one in measured.items()}
    return Answer(text if measured else _NO_LATENCY, {"latency": fields})


def latency_histogram(client: STLClient) -> Answer:
    """Return the histograms of latency streams, and their errors."""
    stats = client.get_pgid_stats()["latency"]
    measured = {pgid: one for pgid, one in stats.items() if isinstance(pgid, int)}
    buckets = sorted({key for one in measured.values() for key in one["latency"]["histogram"]}, reverse=True)
    histograms = [one["latency"]["histogram"] for one in measured.values()]
    rows = [[str(bucket), *(str(one.get(bucket, "")) for one in histograms)] for bucket in buckets]
    rows.append(["- Counters -", *("" for _ in measured)])
    errors = [one["err_cntrs"] for one in measured.values()]
    names = sorted({name for one in errors for name in one})
    rows += [[name, *(str(one.get(name, 0)) for one in errors)] for name in names]
    text = titled("Latency Histogram", ["PG ID", *map(str, measured)], rows)
    fields = {str(pgid): one for pgid, one in measured.items()}
    return Answer(text if measured else _NO_LATENCY, {"latency": fields})


def _has_times(one: Mapping[str, Any]) -> bool:
    """Whether a packet was measured: without one, zeros stand for times that nobody knows."""
    return bool(one["latency"].get("histogram") or one["latency"].get("total_max"))


_NO_LATENCY = "No latency is measured: streams need flow_stats=STLFlowLatencyStats(...)."


def joined(*answers: Answer) -> Answer:
    """Return several answers as one."""
    fields = {name: value for answer in answers for name, value in answer.fields.items()}
    return Answer("\n".join(answer.text for answer in answers), fields)


def _identities(client: STLClient, ports: Sequence[int], columns: int) -> list[list[str]]:
    infos = client.get_port_info(list(ports))
    rows = [[name, *(str(info.get(key, "")) for info in infos)] for name, key in _IDENTITIES]
    rows.append(["speed", *(f"{info.get('speed', 0):g} Gb/s" for info in infos)])
    return [row + [""] * (columns + 1 - len(row)) for row in rows]


_IDENTITIES = (("owner", "owner"), ("link", "link"), ("state", "status"))


def _summed(stats: Mapping[Any, Any], ports: Sequence[int]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for port in ports:
        for name, value in stats[port].items():
            if isinstance(value, (int, float)):
                whole[name] = whole.get(name, 0) + value
    return whole


def _total(group: Mapping[str, Any], key: str, unit: str | None) -> str:
    if not key:
        return ""
    value = group.get(key, {}).get("total", 0)
    return str(value) if unit is None else _format.rate(value, unit)
