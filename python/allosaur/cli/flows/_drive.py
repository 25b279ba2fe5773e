"""One run of stateful traffic from start to end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from allosaur.cli import _impossible_times
from allosaur.cli._cut_short import CutShort
from allosaur.cli._elapsed import ran_s
from allosaur.cli._errors import EXIT_USAGE, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.cli._steal import StealTime
from allosaur.report import FlowCounters, FlowRates, FlowSampler, Outcomes, SideCounters

if TYPE_CHECKING:
    from allosaur import ASTFClient

SAMPLE_INTERVAL_S = 0.25
_POLL_INTERVAL_S = 0.05
_STOP_GRACE_S = 5.0
"""How much later than it should the server may be, before it is stopped from here."""
_CLOSE_MAX_S = 60.0
"""Flows that are open so long after the end are not waited for, unless the user gave another time."""
ALL_CLIENTS = 0xFFFFFFFF
PERCENTILES = ("p50", "p90", "p99", "p99_9")
TX = "STATE_TX"
RESTING = ("STATE_IDLE", "STATE_ASTF_LOADED")


@dataclass(frozen=True)
class FlowPlan:
    """What to do: which profile, how much of it and how long."""

    profile_id: str = "_"
    multiplier: float = 1.0
    duration_s: float = FOREVER
    """Seconds in which flows begin, or `FOREVER`."""
    latency_pps: int = 0
    ipv6: bool = False
    no_close: bool = False
    """End at once: leave open flows as they are."""
    client_mask: int = ALL_CLIENTS
    """The client ports whose clients begin flows, bit by bit."""
    establish_s: float = 0.0
    close_s: float = 0.0
    resetting: frozenset[str] = frozenset()
    """The sides ("client", "server") whose programs end connections with a reset: it may overtake bytes."""

    @property
    def until_s(self) -> float:
        """When the last flow begins, in seconds after the start; infinite without an end."""
        return math.inf if self.duration_s == FOREVER else self.duration_s

    @property
    def servers_only(self) -> bool:
        """Whether no client begins anything: somebody else asks."""
        return self.client_mask == 0


@dataclass(frozen=True)
class FlowMoment:
    """What is known while the traffic runs: given to whoever shows the progress."""

    plan: FlowPlan
    elapsed_s: float
    counters: FlowCounters
    rates: FlowRates
    is_closing: bool = False
    """No more flows begin; those that are open may end."""
    history: Sequence[float] = ()
    """Flows that came to be, in each second, one value a sample."""


@dataclass(frozen=True)
class FlowResult:
    """What a run did."""

    plan: FlowPlan
    elapsed_s: float
    """Seconds in which flows began."""
    closing_s: float
    """Seconds after that until the last flow was closed."""
    counters: FlowCounters
    rates: Sequence[FlowRates]
    latency: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Of each client port: `min_us`, `average_us`, `max_us`, `jitter_us`, `sent`, `received`."""
    groups: Mapping[str, FlowCounters] = field(default_factory=dict)
    """The counters of template groups, by name."""
    warnings: Sequence[str] = ()
    overdue: bool = False
    """Flows still began, or were open, long after the end."""
    exit_code: int | None = None
    """Set when a signal ended the run: what to exit with."""
    cut_short: str = ""
    """Who or what ended the run before its time, and when; the counters are those until then."""
    profile_warnings: Sequence[str] = ()
    """What the profile was warned of when it was loaded, which is printed already."""
    is_over: bool = True
    """Whether the traffic has ended: what runs is judged by what it did so far."""

    @property
    def all_warnings(self) -> list[str]:
        """The warnings of the profile and of the server."""
        return [*self.profile_warnings, *self.warnings]


def drive(
    client: ASTFClient, plan: FlowPlan, interrupt: Interrupt, show: Callable[[FlowMoment], None]
) -> FlowResult:
    """Start the profile that is loaded, watch it until its flows are closed, and return what happened.

    It is stopped in any case, also when this raises :class:`CommandError`.
    """
    with explained("cannot read the counters"):
        client.clear_stats(pid_input=plan.profile_id)
    sampler = FlowSampler(lambda: read(client, plan.profile_id))
    cut = CutShort(client)
    steal = StealTime.of_server(client.get_connection_info()["server"])
    watched = _Watched()
    latency: Mapping[int, Mapping[str, Any]] = {}
    groups: Mapping[str, FlowCounters] = {}
    try:
        asked_at_s = time.monotonic()
        with explained("the traffic did not start", EXIT_USAGE):
            begin(client, plan)
        watched.start_took_s = time.monotonic() - asked_at_s
        sampler.started()
        with cut.noticed("the server stopped answering while the traffic ran"):
            _watch(client, plan, interrupt, sampler, show, cut, watched)
    finally:
        if not cut.reason:
            with explained("cannot stop the traffic"):
                client.stop(pid_input=plan.profile_id)
    if cut.reason:
        watched.elapsed_s = watched.elapsed_s or sampler.samples[-1].time_s
    else:
        with explained("cannot read the counters"):
            sampler.sample()
            latency = latencies(client) if plan.latency_pps else {}
            groups = read_groups(client, plan.profile_id)
    warnings = [str(warning) for warning in client.get_warnings()]
    if sampler.counters.missed_flows:
        warnings += steal.told()
    impossible = ((f"echo of port {port}", one["impossible_times"]) for port, one in latency.items())
    warnings += _impossible_times.told(impossible)
    return FlowResult(
        plan,
        watched.elapsed_s,
        watched.closing_s,
        sampler.counters,
        sampler.rates(watched.elapsed_s),
        latency,
        groups,
        warnings,
        watched.overdue,
        interrupt.exit_code,
        cut.reason,
    )


def begin(client: ASTFClient, plan: FlowPlan, dump_interval_s: float = 0.0) -> None:
    """Start the profile that is loaded; its flows are recorded every `dump_interval_s`, if above zero."""
    client.start(
        mult=plan.multiplier,
        duration=plan.duration_s,
        nc=plan.no_close,
        latency_pps=plan.latency_pps,
        ipv6=plan.ipv6,
        pid_input=plan.profile_id,
        client_mask=plan.client_mask,
        e_duration=plan.establish_s,
        t_duration=plan.close_s,
        dump_interval=dump_interval_s,
    )


def read(client: ASTFClient, profile_id: str, is_sum: bool = False) -> FlowCounters:
    """Read the counters of a profile, or of all."""
    # A server of both kinds of traffic has ports of streams, too, whose packets are not of these flows.
    ports = client.get_acquired_ports() or None
    stats = client.get_stats(ports, pid_input=profile_id, is_sum=is_sum, only_given=True)
    profiles = list(client.get_profiles_state()) if is_sum else [profile_id]
    outcomes = None
    if _has(client, "get_flow_outcomes"):
        outcomes = Outcomes()
        for name in profiles:
            outcomes = outcomes.plus(Outcomes.from_reply(client.get_flow_outcomes(name)))
    return _counters(client, stats["traffic"], stats, _missed(client, profiles), outcomes)


def read_groups(client: ASTFClient, profile_id: str) -> dict[str, FlowCounters]:
    """Read the counters of the template groups that have names."""
    names = client.get_tg_names(profile_id)
    if not names:
        return {}
    stats = client.get_traffic_tg_stats(names, pid_input=profile_id)
    outcomes: dict[str, Outcomes] = {}
    if _has(client, "get_flow_outcomes"):
        groups = client.get_flow_outcomes(profile_id)["groups"]
        outcomes = {name: Outcomes.from_reply(group) for name, group in groups.items()}
    return {name: _counters(client, stats[name], {}, None, outcomes.get(name)) for name in names}


def latencies(client: ASTFClient) -> dict[int, dict[str, Any]]:
    """Read what was measured of latency, by port, in microseconds; with percentiles if the server tells."""
    found: dict[int, dict[str, Any]] = {}
    for port, one in client.get_latency_stats().items():
        times, counted = one.get("hist", {}), one.get("stats", {})
        if not counted.get("m_tx_pkt_ok") and not counted.get("m_pkt_ok"):
            continue
        found[port] = {
            "sent": int(counted.get("m_tx_pkt_ok", 0)),
            "received": int(counted.get("m_pkt_ok", 0)),
            "impossible_times": int(counted.get("impossible_times", 0)),
        }
        if not times.get("cnt", found[port]["received"]):
            # Without a message that was measured, zeros stand for times that nobody knows.
            continue
        found[port] |= {
            "min_us": float(times.get("min_usec", 0)),
            "average_us": float(times.get("s_avg", 0)),
            "max_us": float(times.get("max_usec", 0)),
            "jitter_us": float(counted.get("m_jitter", 0)),
        }
        found[port] |= {f"{name}_us": float(times[name]) for name in PERCENTILES if name in times}
    return found


def _missed(client: ASTFClient, profiles: Sequence[str]) -> int | None:
    """Count the flows that were not opened in time; `None` when the server does not, as TRex's."""
    if not _has(client, "get_flow_rates"):
        return None
    return sum(int(client.get_flow_rates(name)["missed"]) for name in profiles)


def _has(client: ASTFClient, command: str) -> bool:
    return command in client.get_server_supported_cmds()


def _counters(
    client: ASTFClient,
    traffic: Mapping[str, Any],
    ports: Mapping[Any, Any],
    missed: int | None,
    outcomes: Outcomes | None,
) -> FlowCounters:
    _, wrong = client.is_traffic_stats_error(traffic)
    return FlowCounters(
        SideCounters.from_stats("client", traffic["client"], ports),
        SideCounters.from_stats("server", traffic["server"], ports),
        missed,
        {side: {name: int(traffic[side][name]) for name in names} for side, names in wrong.items()},
        outcomes,
    )


@dataclass
class _Watched:
    start_took_s: float = 0.0
    """From asking for the start until its confirmation."""
    elapsed_s: float = 0.0
    closing_s: float = 0.0
    overdue: bool = False


def _watch(
    client: ASTFClient,
    plan: FlowPlan,
    interrupt: Interrupt,
    sampler: FlowSampler,
    show: Callable[[FlowMoment], None],
    cut: CutShort,
    watched: _Watched,
) -> None:
    """Sample until the profile rests, a signal comes, or the run is overdue."""
    history: list[float] = []
    ended_s: float | None = None
    next_sample_s = SAMPLE_INTERVAL_S
    while not interrupt:
        cut.check()
        now_s = sampler.elapsed_s()
        state = client.get_profiles_state().get(plan.profile_id, RESTING[0])
        if ended_s is None and (state != TX or now_s >= plan.until_s):
            # A server goes on with TX until the last flow is closed.
            ended_s = ran_s(plan.until_s, sampler.elapsed_s(), watched.start_took_s)
        if now_s >= next_sample_s:
            next_sample_s += SAMPLE_INTERVAL_S * (1 + (now_s - next_sample_s) // SAMPLE_INTERVAL_S)
            counters = sampler.sample().counters
            rates = sampler.recent(SAMPLE_INTERVAL_S)
            history.append((rates.server if plan.servers_only else rates.client).connected_fps)
            show(FlowMoment(plan, now_s, counters, sampler.recent(), ended_s is not None, history))
        if state in RESTING:
            break
        if _is_overdue(plan, now_s, ended_s):
            watched.overdue = True
            break
        time.sleep(_POLL_INTERVAL_S)
    watched.elapsed_s = sampler.elapsed_s() if ended_s is None else ended_s
    watched.closing_s = max(sampler.elapsed_s() - watched.elapsed_s, 0.0)


def _is_overdue(plan: FlowPlan, now_s: float, ended_s: float | None) -> bool:
    if ended_s is None:
        return False
    limit_s = plan.close_s or (0.0 if plan.no_close else _CLOSE_MAX_S)
    return now_s > ended_s + limit_s + _STOP_GRACE_S
