"""Trials of streams: a profile at so many packets a second out of each port, for so long."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from allosaur.cli import _arguments, _gateways, _profile, _run
from allosaur.cli._access import check_ports, refuse_running, remote_client, take
from allosaur.cli._errors import EXIT_USAGE, CommandError, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.ndr._bench import Case, Counted, Scale, Subject
from allosaur.cli.ndr._rates import packet_rate
from allosaur.report._latency import LATENCY_COLUMNS
from allosaur.report._streams import StreamCounters
from allosaur.run._metrics import LATENCY, PERCENTILE
from allosaur.run.streams import _groups
from allosaur.run.streams._counts import Plan, pair_of
from allosaur.run.streams._load import StreamLoad, watched_ports
from allosaur.run.streams._metrics import refuse_unmeasured
from allosaur.run.streams._result import StreamResult
from allosaur.server import LocalServer

if TYPE_CHECKING:
    from allosaur import STLClient, STLStream

_PACKETS_MIN = 10
"""The least load is so many packets in the shortest trial, or this share of the highest load."""
_LOAD_MIN_SHARE = 1e-5


class StreamSubject(Subject[StreamResult]):
    """Streams out of some ports: a load is packets a second of each."""

    mode = "stateless"
    unit = "pps"
    load_noun = "loads"
    metrics = StreamLoad.metrics

    def __init__(self, client: STLClient, options: argparse.Namespace) -> None:
        super().__init__(client, options)
        self._grouping = _groups.Grouping()
        self.ports: Sequence[int] = list(options.ports)
        check_ports(client, self.ports)
        self._watched = watched_ports(self.ports, client.get_port_count())
        refuse_running(client, self.ports, options.force)
        take(client, self.ports, options.force)

    @staticmethod
    def check(options: argparse.Namespace) -> None:
        """Refuse what is for flows, and name the ports that send."""
        _arguments.refuse_options_of_flows(argparse.Namespace(**{**vars(options), "latency": None}))
        ports = [0] if options.ports is None else options.ports
        if options.both:
            ports = list(dict.fromkeys(end for port in ports for end in (port, pair_of(port))))
        options.ports = ports

    @staticmethod
    def connect(options: argparse.Namespace) -> AbstractContextManager[Any]:
        """Connect; a server of our own has the ports that send, and those at their other ends."""
        ports = _run.local_ports(options, 1 + max(max(port, pair_of(port)) for port in options.ports))
        return _run.client_of_run(
            options, remote_client, lambda: LocalServer(ports=ports, cores=options.cores)
        )

    @staticmethod
    def try_loading(case: Case, options: argparse.Namespace) -> None:
        """Load it for each port."""
        for port in options.ports:
            load_streams(case, port)

    def put(self, case: Case, interrupt: Interrupt) -> Scale:
        """Put the streams onto the ports, each with a packet group, and tell the range of loads."""
        client, options = self.client, self.options
        streams = {port: load_streams(case, port) for port in self.ports}
        if options.latency:
            for port, of_port in streams.items():
                of_port.append(self._timed(of_port, port, case))
        needy = [one for one in options.criteria if one.metric.needs in (LATENCY, PERCENTILE)]
        if needy and not any(
            one.get_flow_stats_type() == "latency" for all_ in streams.values() for one in all_
        ):
            raise bad_input(f"--fail-if '{needy[0].text}': no packet is timed; give -l PPS, such as -l 1000")
        with explained("cannot clear the ports"):
            client.stop(ports=self.ports)
            client.remove_all_streams(ports=self.ports)
        with explained("cannot read the packet groups"):
            self._grouping = _groups.assign(client, streams, wanted=not options.port_counters)
        plan = Plan(self.ports, "1", options.duration, self._watched)
        refuse_unmeasured(options.criteria, client, plan, streams, self._grouping)
        for port, of_port in streams.items():
            with explained(f"profile {case.path}, port {port}", EXIT_USAGE):
                client.add_streams(of_port, ports=[port])
        _gateways.wait(client, _gateways.of_streams(client, self.ports), interrupt, options.force)
        with explained(f"profile {case.path}", EXIT_USAGE):
            found = client.validate(self.ports)
        return self._scale([found[port]["rate"] for port in self.ports])

    def _scale(self, rates: Sequence[Mapping[str, float]]) -> Scale:
        """Return the range of loads of one port, and what they are in bits."""
        options, first = self.options, rates[0]
        if not first.get("max_pps"):
            raise bad_input(f"profile {options.profile}: it sends nothing")
        load_max = min(packet_rate(options.max or "100%", one) for one in rates)
        load_min = max(_LOAD_MIN_SHARE * load_max, _PACKETS_MIN / self.shortest_s)
        if options.min is not None:
            load_min = max(packet_rate(options.min, one) for one in rates)
        pps = first["max_pps"]
        units = {"bps_l1": "max_bps_l1", "bps_l2": "max_bps_l2", "line_percent": "max_line_util"}
        return self.range(load_max, load_min, **{unit: first[name] / pps for unit, name in units.items()})

    def load(self, load: float, duration_s: float) -> StreamLoad:
        """Let packet groups begin at zero: what arrived of the trial before is none of this one's."""
        with explained("cannot read the counters"):
            self.client.clear_stats(ports=self._watched, only_given=True)
        plan = Plan(self.ports, _multiplier(load), duration_s, self._watched, self.options.force)
        return StreamLoad(plan, self.client, self._grouping)

    def change(self, load: float) -> None:
        """Change the load of what runs."""
        with explained("cannot change the rate"):
            self.client.update(ports=self.ports, mult=_multiplier(load), force=self.options.force)

    def counted(self, result: StreamResult) -> Counted:
        """Return what was sent and did not arrive."""
        found = result.directions
        if all(one.lost_packets is None for one in found):
            raise CommandError(
                "no port receives what is sent, so that nothing tells what is lost: ports are pairs, 0 and "
                "1, 2 and 3; connect the device between two of them"
            )
        sent = sum(one.sent_packets for one in found)
        missed = result.total.missed_packets or 0
        lost = sum(one.lost_packets or 0 for one in found)
        details = {
            "sent": sent,
            "received": sum(one.received_packets for one in found),
            "not_received": lost,
            "missed": missed,
            "duplicates": sum(one.duplicate_packets for one in found),
            "elapsed_s": round(result.elapsed_s, 6),
            "directions": [one.to_json() for one in found],
            **_timed_details(result.streams),
            "warnings": list(result.warnings),
        }
        return Counted(sent + missed, lost, missed, details)

    def _timed(self, streams: Sequence[STLStream], port: int, case: Case) -> STLStream:
        """Return a stream of timed packets like those of the first; no load changes its rate."""
        from allosaur import STLFlowLatencyStats, STLStream, STLTXCont

        like = next((one for one in streams if not one.is_dummy()), None)
        if like is None:
            raise bad_input(f"profile {case.path}: it has no stream whose packets could be timed")
        active = self.client.get_active_pgids()
        taken = {*active["flow_stats"], *active["latency"]}
        pg_id = next(one for one in iter(lambda: secrets.randbelow(1 << 32), -1) if one not in taken)
        fields = {
            **like.to_json(),
            "name": f"latency of port {port}",
            "mode": STLTXCont(pps=self.options.latency).to_json(),
            "flow_stats": STLFlowLatencyStats(pg_id=pg_id).to_json(),
            "vm": {"instructions": []},
            "isg": 0.0,
            "self_start": True,
        }
        fields.pop("next", None)
        return STLStream.from_json(fields)


def _multiplier(load: float) -> str:
    return f"{load:.9f}pps"


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
        for name in LATENCY_COLUMNS.values()
        if (values := [value for one in measured if (value := getattr(one, name)) is not None])
    }
    if worst:
        worst["min_us"] = min(one.min_us for one in measured)
    return {"latency": worst or None, "out_of_order": sum(counted) if counted else None}
