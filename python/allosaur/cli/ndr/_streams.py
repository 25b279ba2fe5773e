"""Trials of streams: a profile at so many packets a second out of each port, for so long."""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allosaur.cli import _gateways, _profile
from allosaur.cli._access import check_ports, refuse_running, take
from allosaur.cli._errors import EXIT_SETUP, EXIT_USAGE, CommandError, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.ndr import _criteria
from allosaur.cli.ndr._bench import Case, Scale, Show
from allosaur.cli.ndr._rates import packet_rate
from allosaur.report import StreamCounters
from allosaur.run import Moment, drive_one
from allosaur.run.streams import _groups
from allosaur.run.streams._counts import Plan
from allosaur.run.streams._load import StreamLoad, watched_ports
from allosaur.run.streams._progress import StreamMoment
from allosaur.run.streams._result import StreamResult
from allosaur.search import Stopped, Trial

if TYPE_CHECKING:
    from allosaur import STLClient, STLStream

_PACKETS_MIN = 10
"""The least load is so many packets in the shortest trial, or this share of the highest load."""
_LOAD_MIN_SHARE = 1e-5
_TIMES = ("min_us", "average_us", "p50_us", "p90_us", "p99_us", "p99_9_us", "max_us", "jitter_us")


@dataclass(frozen=True)
class Sample:
    """What all ports had counted at a time of the traffic."""

    time_s: float
    received: int
    lost: int
    """Packets that were sent until the sample before, and have not arrived."""


class StreamBench:
    """Makes trials of streams. The ports are owned from the beginning to the end of the client."""

    mode = "stateless"

    def __init__(self, client: STLClient, options: argparse.Namespace, interrupt: Interrupt) -> None:
        self.exit_code: int | None = None
        self.server_counters: Mapping[str, Any] = {}
        self._client = client
        self._options = options
        self._interrupt = interrupt
        self._grouping = _groups.Grouping()
        self.ports: Sequence[int] = list(options.ports)
        check_ports(client, self.ports)
        self._watched = watched_ports(self.ports, client.get_port_count())
        refuse_running(client, self.ports, options.force)
        take(client, self.ports, options.force)

    def put(self, case: Case) -> Scale:
        """Put the streams onto the ports, each with a packet group, and tell the range of loads."""
        streams = {port: load_streams(case, port) for port in self.ports}
        if self._options.latency:
            for port, of_port in streams.items():
                of_port.append(self._timed(of_port, port, case))
        needy = [one for one in self._options.criteria if one.metric.needs == _criteria.LATENCY]
        if needy and not any(
            one.get_flow_stats_type() == "latency" for all_ in streams.values() for one in all_
        ):
            raise bad_input(f"--fail-if '{needy[0].text}': no packet is timed; give -l PPS, such as -l 1000")
        with explained("cannot clear the ports"):
            self._client.stop(ports=self.ports)
            self._client.remove_all_streams(ports=self.ports)
        with explained("cannot read the packet groups"):
            self._grouping = _groups.assign(self._client, streams, wanted=not self._options.port_counters)
        for port, of_port in streams.items():
            with explained(f"profile {case.path}, port {port}", EXIT_USAGE):
                self._client.add_streams(of_port, ports=[port])
        _gateways.wait(
            self._client, _gateways.of_streams(self._client, self.ports), self._interrupt, self._options.force
        )
        with explained(f"profile {case.path}", EXIT_USAGE):
            found = self._client.validate(self.ports)
        return self._scale([found[port]["rate"] for port in self.ports])

    def _scale(self, rates: Sequence[Mapping[str, float]]) -> Scale:
        """Return the range of loads of one port, and what they are in bits."""
        options, first = self._options, rates[0]
        if not first.get("max_pps"):
            raise bad_input(f"profile {options.profile}: it sends nothing")
        load_max = min(packet_rate(options.max or "100%", one) for one in rates)
        shortest_s = min(options.first_trial, options.duration)
        load_min = max(_LOAD_MIN_SHARE * load_max, _PACKETS_MIN / shortest_s)
        if options.min is not None:
            load_min = max(packet_rate(options.min, one) for one in rates)
        if load_min >= load_max:
            raise bad_input(
                f"loads from {load_min:,.6g} to {load_max:,.6g} pps are no range; give --min below --max, or "
                "longer trials with -d and --first-trial"
            )
        pps = first["max_pps"]
        return Scale(
            "pps",
            load_max,
            load_min,
            first["max_bps_l1"] / pps,
            first["max_bps_l2"] / pps,
            first["max_line_util"] / pps,
        )

    def trial(self, load: float, duration_s: float, show: Show) -> Trial:
        """Send the load out of each port, and count what of it arrives."""
        if self._interrupt:
            raise self._stopped("stopped")
        self._interrupt.sleep(self._options.pause)
        plan = Plan(self.ports, f"{load:.9f}pps", duration_s, self._watched, self._options.force)
        begun_s = time.monotonic()
        self._count_from_here()

        def shown(moments: Sequence[Moment]) -> None:
            show(moments[0].elapsed_s)
            if self._options.plugin is not None:
                stats: Mapping[Any, Any] = self._client.get_stats(ports=self.ports, only_given=True)
                self.server_counters = stats["global"]

        outcome = drive_one(StreamLoad(plan, self._client, self._grouping), self._interrupt, shown)
        self._check(outcome)
        return self._counted(outcome, load, time.monotonic() - begun_s)

    def watch(
        self, load: float, duration_s: float, at_s: float, act: Callable[[float], None]
    ) -> list[Sample]:
        """Send a load, call `act` once when the traffic has run `at_s`, and give what was read meanwhile."""
        if self._interrupt:
            raise self._stopped("stopped")
        self._count_from_here()
        samples: list[Sample] = []
        acted: list[float] = []

        def show(moments: Sequence[Moment]) -> None:
            moment = moments[0]
            assert isinstance(moment, StreamMoment)
            received = sum(one.rx_packets for one in moment.counters.values())
            samples.append(Sample(moment.elapsed_s, received, sum(one or 0 for one in moment.lost.values())))
            if not acted and moment.elapsed_s >= at_s:
                acted.append(moment.elapsed_s)
                act(moment.elapsed_s)

        plan = Plan(self.ports, f"{load:.9f}pps", duration_s, self._watched, self._options.force)
        outcome = drive_one(StreamLoad(plan, self._client, self._grouping), self._interrupt, show)
        self._check(outcome)
        return samples

    def _count_from_here(self) -> None:
        """Let packet groups begin at zero: what arrived of the trial before is none of this one's."""
        with explained("cannot read the counters"):
            self._client.clear_stats(ports=self._watched, only_given=True)

    def change(self, load: float) -> None:
        """Change the load of what runs."""
        with explained("cannot change the rate"):
            self._client.update(ports=self.ports, mult=f"{load:.9f}pps", force=self._options.force)

    def _check(self, outcome: StreamResult) -> None:
        """Raise `Stopped` when a signal or somebody else ended the traffic."""
        if outcome.exit_code is not None:
            raise self._stopped("stopped")
        if outcome.cut_short:
            self.exit_code = EXIT_SETUP
            raise Stopped(outcome.cut_short)

    def _stopped(self, why: str) -> Stopped:
        self.exit_code = self._interrupt.exit_code
        return Stopped(why)

    def _counted(self, outcome: StreamResult, load: float, took_s: float) -> Trial:
        plan, options = outcome.plan, self._options
        found = outcome.directions
        if all(one.lost_packets is None for one in found):
            raise CommandError(
                "no port receives what is sent, so that nothing tells what is lost: ports are pairs, 0 and "
                "1, 2 and 3; connect the device between two of them"
            )
        sent = sum(one.sent_packets for one in found)
        missed = outcome.total.missed_packets or 0
        offered = sent + missed
        lost = sum(one.lost_packets or 0 for one in found)
        details = {
            "sent": sent,
            "received": sum(one.received_packets for one in found),
            "not_received": lost,
            "missed": missed,
            "duplicates": sum(one.duplicate_packets for one in found),
            "elapsed_s": round(outcome.elapsed_s, 6),
            "directions": [one.to_json() for one in found],
            **_timed_details(outcome.streams),
            "warnings": list(outcome.warnings),
        }
        failures = _criteria.failures(options.criteria, details)
        not_reached = max(missed - round(options.missed * offered), 0)
        return Trial(load, plan.duration_s, offered, lost + not_reached, failures, took_s, details)

    def _timed(self, streams: Sequence[STLStream], port: int, case: Case) -> STLStream:
        """Return a stream of timed packets like those of the first; no load changes its rate."""
        from allosaur import STLFlowLatencyStats, STLStream, STLTXCont

        like = next((one for one in streams if not one.is_dummy()), None)
        if like is None:
            raise bad_input(f"profile {case.path}: it has no stream whose packets could be timed")
        active = self._client.get_active_pgids()
        taken = {*active["flow_stats"], *active["latency"]}
        pg_id = next(one for one in iter(lambda: secrets.randbelow(1 << 32), -1) if one not in taken)
        fields = {
            **like.to_json(),
            "name": f"latency of port {port}",
            "mode": STLTXCont(pps=self._options.latency).to_json(),
            "flow_stats": STLFlowLatencyStats(pg_id=pg_id).to_json(),
            "vm": {"instructions": []},
            "isg": 0.0,
            "self_start": True,
        }
        fields.pop("next", None)
        return STLStream.from_json(fields)


def load_streams(case: Case, port: int) -> list[STLStream]:
    """Load the streams of one port. A frame size that the profile does not read is refused."""
    tunables = dict(case.tunables)
    if case.frame_bytes is not None:
        tunables["size"] = case.frame_bytes
    with _profile.noted_warnings() as noted:
        streams = list(_profile.load(case.path, port % 2, port, tunables).get_streams())
    if case.frame_bytes is not None and any("'size'" in text for text in noted):
        raise bad_input(
            f"--sizes: profile {case.path} has no tunable size; use one that has, such as constant_stream"
        )
    return streams


def _timed_details(streams: Sequence[StreamCounters]) -> dict[str, Any]:
    """Return the worst times of all streams that are timed, and what came out of order."""
    measured = [one.latency for one in streams if one.latency is not None]
    counted = [one.out_of_order_packets for one in streams if one.out_of_order_packets is not None]
    worst = {
        name: max(values)
        for name in _TIMES
        if (values := [value for one in measured if (value := getattr(one, name)) is not None])
    }
    if worst:
        worst["min_us"] = min(one.min_us for one in measured)
    return {"latency": worst or None, "out_of_order": sum(counted) if counted else None}
