"""What a server counts of flows: of profiles, of template groups, of latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from allosaur.report._flow_counters import FlowCounters, SideCounters
from allosaur.report._flow_outcomes import Outcomes
from allosaur.run.flows._counts import FlowPlan

if TYPE_CHECKING:
    from allosaur import ASTFClient

PERCENTILES = ("p50", "p90", "p99", "p99_9")


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
    errors = {side: {name: int(traffic[side][name]) for name in names} for side, names in wrong.items()}
    for side in ("client", "server"):
        if outcomes is not None and (of_applications := outcomes.errors(side)):
            errors[side] = errors.get(side, {}) | of_applications
    return FlowCounters(
        SideCounters.from_stats("client", traffic["client"], ports),
        SideCounters.from_stats("server", traffic["server"], ports),
        missed,
        errors,
        outcomes,
    )
