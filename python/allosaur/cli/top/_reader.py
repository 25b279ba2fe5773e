"""Reads a snapshot by clients that are connected: of streams, of flows, or both on a server of both."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allosaur.cli import _emulated
from allosaur.cli._modes import MODES, STATEFUL, STATELESS
from allosaur.cli.top import _outcomes
from allosaur.cli.top._snapshot import (
    PERCENTILES,
    Core,
    Flows,
    Group,
    Latency,
    Note,
    Pool,
    Port,
    Run,
    Server,
    Snapshot,
)
from allosaur.metrics import MetricsReader

if TYPE_CHECKING:
    from allosaur import ASTFClient, STLClient
    from allosaur.metrics import Metrics

ALL_PROFILES = "all profiles"
_ECHO_ERRORS = (
    *("m_unsup_prot", "m_no_magic", "m_no_id", "m_seq_error", "m_length_error"),
    *("m_no_ipv4_option", "m_tx_pkt_err", "m_l3_cs_err", "m_l4_cs_err"),
    "impossible_times",
)
_NOTES_KEPT = 500
_HEARD_WITHIN_S = 2.0
"""Each client hears of an event at a time of its own."""


@dataclass(frozen=True)
class Clients:
    """Connections to one server; at least one of them is there."""

    streams: STLClient | None = None
    flows: ASTFClient | None = None

    @property
    def all(self) -> list[STLClient]:
        """Those that are there."""
        return [one for one in (self.streams, self.flows) if one is not None]

    @property
    def any(self) -> STLClient:
        """One of them, for what both know."""
        return self.all[0]

    def of(self, mode: str) -> STLClient | None:
        """Return the one that changes ports of a mode."""
        return self.flows if mode == STATEFUL else self.streams


@dataclass(frozen=True)
class Wanted:
    """What the screen shows besides ports and packet groups: the rest is not asked for."""

    flows: bool = False
    flows_of: tuple[str, str | None] | None = None
    """A profile, and a template group of it or all; `None`: the sum of all profiles."""
    dynamic: bool = False
    """Flows: the counters of what is not always there, such as tunnels."""
    cores: bool = False
    attributes: bool = False
    driver_counters: bool = False


EVERYTHING = Wanted(flows=True, cores=True)


class Reader:
    """Reads one server."""

    def __init__(self, clients: Clients, address: str) -> None:
        self.clients = clients
        self._address = address
        self._metrics_reader = MetricsReader(clients.any, [_emulated.PREFIX])
        self._tells = "get_status" in clients.any.get_server_supported_cmds()

    def read(self, wanted: Wanted = EVERYTHING) -> Snapshot:
        """Ask for all of it. Raises `STLError`; `STLConnectionError` when the server is gone."""
        client, flows = self.clients.any, self.clients.flows
        status = client.get_status() if self._tells else None
        # The dictionary of the stateless client is that of both, without the counters of flows.
        read = client.get_stats if client is self.clients.streams else client.get_stats_stl  # type: ignore[attr-defined]
        stats = read(client.get_all_ports())
        util = client.get_util_stats() if wanted.cores else {}
        return Snapshot(
            at_s=time.monotonic(),
            clock_s=time.time(),
            server=self._server(status),
            totals=_totals(stats),
            ports=tuple(self._ports(stats, status, wanted)),
            groups=tuple(_groups(stats["flow_stats"])),
            latency=(*_of_groups(stats), *(_of_ports(flows) if flows is not None else ())),
            flows=_flows(flows, wanted) if flows is not None and wanted.flows else None,
            cores=tuple(_core(one) for one in util.get("cpu") or []),
            pools=tuple(_pools(util.get("mbuf_stats") or {})),
            runs=tuple(_runs(status)) if status is not None else (),
            notes=self._notes(),
            metrics=self._metrics(),
        )

    def _metrics(self) -> Metrics | None:
        """Read the part of the registry that has a view; what its metrics are is asked once."""
        return self._metrics_reader.read() if self._metrics_reader.is_told else None

    def _server(self, status: Mapping[str, Any] | None) -> Server:
        client = self.clients.any
        version, info = client.get_server_version(), client.get_server_system_info()
        modes = tuple(version.get("modes") or [version.get("mode", STATELESS)])
        return Server(
            address=self._address,
            version=str(version.get("version", "?")),
            modes=tuple(one for one in MODES if one in modes) or modes,
            uptime_s=None if status is None else status["uptime_s"],
            core_count=int(info.get("dp_core_count", 0)),
        )

    def _ports(
        self, stats: Mapping[Any, Any], status: Mapping[str, Any] | None, wanted: Wanted
    ) -> Iterator[Port]:
        client = self.clients.any
        ours = {port for one in self.clients.all for port in one.get_acquired_ports()}
        told = {} if status is None else {int(port["port_id"]): port for port in status["ports"]}
        for number, port in client.ports.items():
            known = told.get(number)
            owner = (known["owner"] or {}).get("user", "") if known else str(port.status.get("owner", ""))
            yield Port(
                number=number,
                kind=str(port.info.get("description") or port.info.get("driver", "")),
                mode=str(known["mode"]) if known else client.get_mode(),
                owner=owner,
                is_ours=number in ours,
                state=str(known["state"]) if known else port.state,
                is_up=port.is_link_up,
                speed_bps=port.speed_bps,
                counters=stats[number],
                attributes=client.get_port_attr(number) if wanted.attributes else {},
                driver_counters=client.get_xstats(number) if wanted.driver_counters else {},
            )

    def _notes(self) -> tuple[Note, ...]:
        """Return what clients heard, once what both did."""
        heard = [
            (event.ts, number, event)
            for number, one in enumerate(self.clients.all)
            for event in one.get_events()
        ]
        found: list[Note] = []
        last: dict[str, tuple[float, int]] = {}
        for at_s, number, event in sorted(heard, key=lambda one: one[:2]):
            before = last.get(event.msg)
            if before is None or before[1] == number or at_s - before[0] > _HEARD_WITHIN_S:
                last[event.msg] = at_s, number
                found.append(Note(at_s, event.msg, event.ev_type != "info"))
        return tuple(found[-_NOTES_KEPT:])


def _totals(stats: Mapping[Any, Any]) -> dict[str, float]:
    totals = {name: value for name, value in stats["global"].items() if isinstance(value, (int, float))}
    for name in ("missed_packets", "rx_lost_packets"):
        if name in stats["total"]:
            totals[name] = stats["total"][name]
    return totals


def _groups(stats: Mapping[Any, Any]) -> Iterator[Group]:
    for number, group in stats.items():
        if not isinstance(number, int):
            continue
        total = {name: by_port.get("total", 0) for name, by_port in group.items()}
        yield Group(
            number=number,
            tx_pkts=int(total.get("tx_pkts", 0)),
            rx_pkts=int(total.get("rx_pkts", 0)),
            tx_bytes=int(total.get("tx_bytes", 0)),
            rx_bytes=int(total.get("rx_bytes", 0)),
            tx_pps=float(total.get("tx_pps", 0)),
            rx_pps=float(total.get("rx_pps", 0)),
            tx_bps=float(total.get("tx_bps", 0)),
            rx_bps=float(total.get("rx_bps", 0)),
            missed=int(total.get("missed_pkts", 0)),
        )


def _of_groups(stats: Mapping[Any, Any]) -> Iterator[Latency]:
    counted = stats["flow_stats"]
    for number, one in stats["latency"].items():
        if not isinstance(number, int):
            continue
        times, group = one["latency"], counted.get(number, {})
        yield Latency(
            name=f"pg {number}",
            sent=int(group.get("tx_pkts", {}).get("total", 0)),
            received=int(group.get("rx_pkts", {}).get("total", 0)),
            times_usec={}
            if not times.get("histogram") and not times.get("total_max")
            else {
                "min": times.get("total_min"),
                "average": times.get("average"),
                "max": times.get("total_max"),
                "last_max": times.get("last_max"),
                "jitter": times.get("jitter"),
                **{name: times.get(name) for name in PERCENTILES},
            },
            histogram={int(bucket): count for bucket, count in times.get("histogram", {}).items()},
            errors=one["err_cntrs"],
        )


def _of_ports(client: ASTFClient) -> Iterator[Latency]:
    for number, one in sorted(client.get_latency_stats().items()):
        times, counters = one["hist"], one["stats"]
        histogram = {int(item["key"]): int(item["val"]) for item in times.get("histogram") or []}
        below = times.get("cnt", 0) - times.get("high_cnt", 0)
        yield Latency(
            name=f"port {number}",
            sent=int(counters.get("m_tx_pkt_ok", 0)),
            received=int(counters.get("m_pkt_ok", 0)),
            times_usec={}
            if not times.get("cnt", 1)
            else {
                "min": times.get("min_usec"),
                "average": times.get("s_avg"),
                "max": times.get("max_usec"),
                "last_max": times.get("s_max"),
                "jitter": counters.get("m_jitter"),
                **{name: times.get(name) for name in PERCENTILES},
            },
            histogram={**({0: below} if below else {}), **histogram},
            errors={name.removeprefix("m_"): counters.get(name, 0) for name in _ECHO_ERRORS},
        )


def _flows(client: ASTFClient, wanted: Wanted) -> Flows:
    loaded = [name for name, state in sorted(client.get_profiles_state().items()) if state != "STATE_IDLE"]
    choices = tuple((name, group) for name in loaded for group in (None, *client.get_tg_names(name)))
    chosen = wanted.flows_of if wanted.flows_of in choices else None
    stats: Mapping[str, Mapping[str, float]]
    outcomes: dict[str, tuple[int, int]] = {}
    if wanted.dynamic:
        stats = client.get_dynamic_traffic_stats(True, chosen[0] if chosen else "_", is_sum=chosen is None)
        found: Mapping[str, str] = {}
    else:
        stats = _counters(client, chosen)
        _, by_side = client.is_traffic_stats_error(stats)
        found = {name: text for errors in by_side.values() for name, text in errors.items()}
        ended = _outcomes.read(client, *(chosen or ()))
        if ended is not None:
            outcomes = {label: (values[0], values[1]) for label, values in ended.rows()}
    of = ALL_PROFILES if chosen is None else f"profile {chosen[0]}"
    if chosen is not None and chosen[1] is not None and not wanted.dynamic:
        of += f", template group {chosen[1]}"
    return Flows(of, stats["client"], stats["server"], found, outcomes, choices)


def _counters(client: ASTFClient, chosen: tuple[str, str | None] | None) -> Mapping[str, Mapping[str, float]]:
    if chosen is None:
        return client.get_traffic_stats(is_sum=True)
    profile, group = chosen
    if group is None:
        return client.get_traffic_stats(pid_input=profile)
    return client.get_traffic_tg_stats([group], pid_input=profile)[group]


def _core(told: Mapping[str, Any]) -> Core:
    return Core(
        tuple(port for port in told.get("ports") or () if port != -1),
        tuple(float(value) for value in told.get("history") or ()),
    )


def _pools(told: Mapping[str, Mapping[str, Any]]) -> Iterator[Pool]:
    for socket, sizes in told.items():
        for size, (free, total) in sizes.items():
            yield Pool(socket, size, total, total - free)


def _runs(status: Mapping[str, Any]) -> Iterator[Run]:
    of_ports = [(port["port_id"], one) for port in status["ports"] for one in port["profiles"]]
    for port, profile in [*of_ports, *((None, one) for one in status["profiles"])]:
        run = profile["run"]
        if run is not None:
            yield Run(
                port, str(profile["profile_id"]), run["multiplier"], run["running_s"], run["duration_s"]
            )
