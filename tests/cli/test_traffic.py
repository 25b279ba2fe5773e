"""A run from start to end against a client that follows a script: no server, no waiting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from allosaur import STLError
from allosaur.cli._errors import CommandError
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.client._port import Port
from allosaur.report._counters import PortCounters, Sampler
from allosaur.run import Moment, _drive, _summary, drive_one, judge
from allosaur.run.streams import _load
from allosaur.run.streams._counts import Plan, pair_of
from allosaur.run.streams._groups import Grouping
from allosaur.run.streams._load import StreamLoad, watched_ports
from allosaur.run.streams._result import StreamResult


class ScriptedClient:
    """Sends `packets` from each port at once when started, and is active for so many questions."""

    def __init__(self, packets: int = 100, lost: int = 0, missed: int = 0, active_polls: int = 3) -> None:
        self.packets, self.lost, self.missed = packets, lost, missed
        self.active_polls = active_polls
        self.calls: list[str] = []
        self.fail_in = ""
        self.started = False

    def get_connection_info(self) -> dict[str, Any]:
        return {"server": "192.0.2.1"}

    def get_stats(self, ports: Sequence[int], only_given: bool = False) -> dict[Any, Any]:
        assert only_given, "the total of a run is of its own ports"
        sent = self.packets if self.started else 0
        port = {"opackets": sent, "obytes": 64 * sent, "ipackets": 0, "ibytes": 0, "missed_packets": 0}
        received = {**port, "ipackets": 1000 + (sent - self.lost if self.started else 0)}
        self._note("get_stats")
        one = {**received, "missed_packets": self.missed if self.started else 0}
        return dict.fromkeys(ports, one)

    def start(self, **options: Any) -> None:
        self._note("start")
        self.started = True

    def is_traffic_active(self, ports: Sequence[int]) -> bool:
        self._note("is_traffic_active")
        self.active_polls -= 1
        return self.active_polls > 0

    def stop(self, ports: Sequence[int]) -> None:
        self._note("stop")

    def get_port(self, port: int) -> Port:
        return Port(port, {"driver": "memory"})

    @property
    def ports(self) -> dict[int, Port]:
        return {port: self.get_port(port) for port in (0, 1)}

    def get_acquired_ports(self) -> list[int]:
        return [0, 1]

    def why_lost(self, ports: Sequence[int]) -> str | None:
        return None

    def get_warnings(self) -> list[str]:
        return ["the link is short"]

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if call == self.fail_in:
            raise STLError("the wire was cut")


def plan(duration_s: float = 1.0) -> Plan:
    return Plan(ports=[0, 1], multiplier="1", duration_s=duration_s, watched=[0, 1])


def ports(sending: Sequence[int]) -> Grouping:
    return Grouping.none(sending, "a test counts ports")


def run(client: ScriptedClient, duration_s: float = 1.0) -> StreamResult:
    with Interrupt() as interrupt:
        load = StreamLoad(plan(duration_s), client)  # type: ignore[arg-type]
        return drive_one(load, interrupt, lambda moments: None)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packets that never come are given up at once, and the loop does not rest."""
    monkeypatch.setattr(_load, "_SETTLE_S", 0.0)
    monkeypatch.setattr(_load, "_POLL_INTERVAL_S", 0.0)
    monkeypatch.setattr(_drive, "_POLL_INTERVAL_S", 0.0)


def test_what_was_counted_before_the_start_does_not_count() -> None:
    outcome = run(ScriptedClient())
    assert outcome.total.tx_packets == 200
    assert outcome.total.rx_packets == 200
    verdict = judge(outcome)
    assert verdict.ok
    assert (outcome.lost_packets, outcome.missed_packets) == (0, 0)
    assert outcome.warnings == ["the link is short"]


def test_lost_packets_fail_the_run() -> None:
    outcome = run(ScriptedClient(lost=3))
    verdict = judge(outcome)
    assert not verdict.ok
    assert outcome.lost_packets == 6
    assert "6 packets were sent and not received (3 %)" in verdict.summary


def test_missed_load_fails_the_run_too() -> None:
    outcome = run(ScriptedClient(missed=25))
    verdict = judge(outcome)
    assert not verdict.ok
    assert outcome.total.offered_packets == 250
    assert "load not reached: 50 packets were not sent in time (20 %)" in verdict.summary


def test_who_missed_load_is_told_what_the_host_took_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_drive.StealTime, "told", lambda self: ["stolen"])
    assert run(ScriptedClient(missed=2)).hints == ["stolen"]
    assert run(ScriptedClient()).hints == []


def test_a_run_that_sends_nothing_is_no_success() -> None:
    verdict = judge(run(ScriptedClient(packets=0)))
    assert not verdict.ok
    assert "nothing was sent" in verdict.summary


def test_the_traffic_is_stopped_whatever_happens() -> None:
    client = ScriptedClient()
    client.fail_in = "is_traffic_active"
    with pytest.raises(CommandError, match="stopped answering while the traffic ran: the wire was cut"):
        run(client)
    assert client.calls[-1] == "stop"


def test_a_start_that_is_refused_says_so() -> None:
    client = ScriptedClient()
    client.fail_in = "start"
    with pytest.raises(CommandError, match="the traffic did not start: the wire was cut"):
        run(client)


def test_a_signal_stops_the_traffic_and_keeps_the_result() -> None:
    client = ScriptedClient(active_polls=10**9)
    seen: list[Moment] = []
    with Interrupt() as interrupt:

        def note_and_stop(moments: Sequence[Moment]) -> None:
            seen.extend(moments)
            interrupt.exit_code = 130

        load = StreamLoad(plan(FOREVER), client)  # type: ignore[arg-type]
        outcome = drive_one(load, interrupt, note_and_stop)
    assert "stop" in client.calls
    assert outcome.exit_code == 130
    assert outcome.total.tx_packets == 200
    assert len(seen) == 1
    assert seen[0].counters[0].tx_packets == 100


def test_traffic_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_drive, "_STOP_GRACE_S", 0.0)
    client = ScriptedClient(active_polls=10**9)
    verdict = judge(run(client, duration_s=0.01))
    assert not verdict.ok
    assert "did not end after 0.01 s, and was stopped" in verdict.summary
    assert "stop" in client.calls


def test_a_run_that_ends_by_itself_ran_as_long_as_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    client = ScriptedClient(active_polls=10**9)
    begins, asks = client.start, client.is_traffic_active

    def start(**options: Any) -> None:
        """The server starts the traffic at once; its answer comes 60 ms later."""
        begins(**options)
        clock.started_s = clock.now_s
        clock.now_s += 0.06

    def is_traffic_active(ports: Sequence[int]) -> bool:
        clock.now_s += 0.007
        return asks(ports) and clock.now_s - clock.started_s < ends_after_s

    monkeypatch.setattr(client, "start", start)
    monkeypatch.setattr(client, "is_traffic_active", is_traffic_active)
    monkeypatch.setattr(_drive.time, "monotonic", lambda: clock.now_s)
    monkeypatch.setattr(_load, "Sampler", lambda read: Sampler(read, lambda: clock.now_s))
    ends_after_s = 10.0
    assert run(client, duration_s=10.0).elapsed_s == 10.0
    # A burst: it ended long before, and nobody knows better than the client's clock.
    ends_after_s = 2.0
    assert run(client, duration_s=10.0).elapsed_s == pytest.approx(1.94, abs=0.01)


class Clock:
    now_s = 1000.0
    started_s = 0.0


def test_extra_packets_of_one_pair_hide_no_loss_of_another() -> None:
    counters = {
        0: PortCounters(tx_packets=100, rx_packets=0),
        1: PortCounters(tx_packets=0, rx_packets=90),
        2: PortCounters(tx_packets=100, rx_packets=0),
        3: PortCounters(tx_packets=0, rx_packets=500),
    }
    outcome = StreamResult(
        Plan([0, 2], "1", 1.0, [0, 1, 2, 3]), counters, {}, elapsed_s=1.0, grouping=ports([0, 2])
    )
    assert outcome.lost_packets == 10


def test_a_port_without_a_peer_loses_nothing() -> None:
    counters = {2: PortCounters(tx_packets=9)}
    outcome = StreamResult(Plan([2], "1", 1.0, [2]), counters, {}, elapsed_s=1.0, grouping=ports([2]))
    verdict = judge(outcome)
    assert verdict.ok
    assert outcome.lost_packets is None
    assert "no port receives it" in verdict.summary


def test_ports_and_their_peers() -> None:
    assert [pair_of(port) for port in (0, 1, 2, 3)] == [1, 0, 3, 2]
    assert watched_ports([0], 4) == [0, 1]
    assert watched_ports([3, 0], 4) == [0, 1, 2, 3]
    assert watched_ports([2], 3) == [2]


def test_the_summary_has_every_number() -> None:
    outcome = run(ScriptedClient(lost=1, missed=2))
    text = _summary.text(outcome, judge(outcome))
    for shown in (
        "port 0",
        "port 1",
        "total",
        "offered packets",
        "204",
        "missed packets",
        "FAILED",
        "lost 2, missed 4",
    ):
        assert shown in text, shown
    result: Mapping[str, Any] = _summary.document(outcome, judge(outcome))
    assert result["total"]["offered_packets"] == 204
    assert result["ports"]["0"]["tx_packets"] == 100
    assert result["total"]["queue_full"] is None
    assert (result["lost_packets"], result["missed_packets"], result["ok"]) == (2, 4, False)


def settling(readings: Iterable[tuple[int, int]]) -> StreamLoad:
    """A load whose port counts these packets sent and received, reading by reading."""
    counted = iter(readings)

    def read() -> dict[int, PortCounters]:
        sent, received = next(counted)
        return {0: PortCounters(tx_packets=sent, rx_packets=received)}

    load = StreamLoad(Plan([0], "1", 1.0, [0, 1]), ScriptedClient(), ports([0]))  # type: ignore[arg-type]
    load.readings = Sampler(read)
    return load


def test_late_packets_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_load, "_SETTLE_S", 60.0)
    readings = iter([(0, 0), (10, 0), (10, 4), (10, 4), (10, 10)])
    load = settling(readings)
    load.settle(1.0)
    assert not load.still_arriving
    assert load.readings.counters[0].rx_packets == 10
    assert next(readings, None) is None, "it stopped asking when all had arrived"


def test_packets_that_still_arrive_at_the_end_of_the_waiting_are_said_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_load, "SETTLE_MAX_S", 0.0)
    load = settling([(0, 0), (100, 40)])
    load.settle(1.0)
    assert load.still_arriving
    counters = {0: PortCounters(tx_packets=9), 1: PortCounters()}
    outcome = StreamResult(Plan([0], "1", 1.0, [0, 1]), counters, {}, elapsed_s=1.0, grouping=ports([0]))
    assert "still arrived" not in judge(outcome).summary
    assert "still arrived" in judge(replace(outcome, still_arriving=True)).summary
