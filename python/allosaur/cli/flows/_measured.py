"""Flows on a server of our own, measured by the time that its threads ran: neighbours do not count.

    with Generator(binary=binary) as generator:
        generator.start(profile, multiplier=1000)
        window = generator.measure(seconds=2.0)

What the kernel counts as run (schedstat of /proc, in nanoseconds) has what it did for the thread in it.
"""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli._steal import StealTime
from allosaur.report._flow_counters import FlowCounters
from allosaur.run.flows._counts import ALL_CLIENTS
from allosaur.run.flows._readings import read
from allosaur.server import LocalServer

if TYPE_CHECKING:
    from allosaur import ASTFClient, ASTFProfile, ASTFProfileLight

_DATA_THREAD = re.compile(r"data-\d+")
_NAMED_S = 5.0
_STEP_S = 0.1
_PROFILE = "_"


@dataclass(frozen=True)
class Sample:
    """What was counted until a moment."""

    at_s: float
    ran_s: float
    """Time that the data threads ran, all together."""
    server_ran_s: float
    """Time that all threads of the server ran."""
    waited_s: float
    """Time that the data threads wanted to run and others did."""
    counters: FlowCounters
    rx_lost: int = 0
    """Frames that were lost on arrival."""
    queue_full: int = 0
    """Times that a queue took no more, and frames were offered again."""


@dataclass(frozen=True)
class Window:
    """What happened between two samples."""

    seconds: float
    ran_s: float
    server_ran_s: float
    waited_s: float
    offered: int
    opened: int
    closed: int
    """Flows that the servers ended; without any server here, those that the clients ended."""
    missed: int
    packets: int
    """Sent and received, by all ports."""
    wire_bytes: int
    """Received by all ports, with FCS."""
    data_bytes: int
    """Received by applications."""
    active_flows: int = 0
    """At the end, on the side that has more of them; those in TIME-WAIT count."""
    active_flows_max: int = 0
    memory_bytes: int = 0
    """Of the whole server."""
    drops: int = 0
    queue_full: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    """Counters that grew and should not have."""
    steal: float = 0.0
    """What the host took away of the machine's CPU time, from 0 to 1."""

    @property
    def cps(self) -> float:
        """Flows a second."""
        return self.closed / self.seconds

    @property
    def cps_running(self) -> float:
        """Flows a second that a data thread ran."""
        return self.closed / self.ran_s if self.ran_s else 0.0

    @property
    def cpu(self) -> float:
        """The share of one core that the data threads took."""
        return self.ran_s / self.seconds

    @property
    def waited(self) -> float:
        """The part of the time in which data threads wanted to run and others had their CPU."""
        return self.waited_s / self.seconds

    @property
    def cpu_us(self) -> float:
        """Microseconds of a core that a flow takes of the data threads."""
        return self.ran_s / self.closed * 1e6 if self.closed else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the numbers, and those that follow from them."""
        derived = {name: getattr(self, name) for name in ("cps", "cps_running", "cpu", "cpu_us", "waited")}
        rates = {"pps": self.packets / self.seconds, "bps": self.wire_bytes * 8 / self.seconds}
        return {**asdict(self), **derived, **rates, "data_bps": self.data_bytes * 8 / self.seconds}


def between(first: Sample, last: Sample, active_max: int = 0, memory: int = 0, steal: float = 0.0) -> Window:
    """Return what happened from the one sample to the other."""
    old, new = first.counters, last.counters
    sides = [(getattr(old, side), getattr(new, side)) for side in ("client", "server")]

    def grown(name: str) -> int:
        return sum(getattr(after, name) - getattr(before, name) for before, after in sides)

    has_servers = new.server.begun_flows > 0
    ends = sides[1] if has_servers else sides[0]
    active = max(after.active_flows for _, after in sides)
    before = {(side, name): count for side, name, count in old.error_list()}
    errors: dict[str, int] = {}
    for side, name, count in new.error_list():
        if more := count - before.get((side, name), 0):
            errors[name] = errors.get(name, 0) + more
    return Window(
        seconds=last.at_s - first.at_s,
        ran_s=last.ran_s - first.ran_s,
        server_ran_s=last.server_ran_s - first.server_ran_s,
        waited_s=last.waited_s - first.waited_s,
        offered=new.offered_flows - old.offered_flows,
        opened=new.client.begun_flows - old.client.begun_flows,
        closed=ends[1].closed_flows - ends[0].closed_flows,
        missed=(new.missed_flows or 0) - (old.missed_flows or 0),
        packets=grown("tx_packets") + grown("rx_packets"),
        wire_bytes=grown("rx_wire_bytes"),
        data_bytes=grown("rx_data_bytes"),
        active_flows=active,
        active_flows_max=max(active, active_max),
        memory_bytes=memory,
        drops=last.rx_lost - first.rx_lost,
        queue_full=last.queue_full - first.queue_full,
        errors=errors,
        steal=steal,
    )


class Generator:
    """A server for flows and its client, while the ``with`` block lasts.

    ``cpus`` are those that its data threads are bound to, one each; without, the kernel chooses.
    ``flows_max`` is how many flows a thread may have.
    """

    def __init__(
        self,
        ports: Sequence[str] = ("memory", "memory"),
        cores: int = 1,
        cpus: Sequence[int] = (),
        flows_max: int | None = None,
        binary: Path | str | None = None,
    ) -> None:
        # A YAML file of our own form; JSON is YAML.
        self._config: dict[str, Any] = {
            "ports": list(ports),
            "cores": list(cpus) or cores,
            "poll": "adaptive",
        }
        if flows_max:
            self._config["flows_max"] = flows_max
        self._binary = binary
        self._cores = len(cpus) or cores
        self._stack = contextlib.ExitStack()
        self._threads: list[int] = []
        self._profile = _PROFILE
        self.client: ASTFClient

    def __enter__(self) -> Generator:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(tempfile.NamedTemporaryFile("w", suffix=".yaml"))
            json.dump(self._config, file)
            file.flush()
            self._server = LocalServer(config=file.name, binary=self._binary, stateful=True)
            stack.enter_context(self._server)
            self.client = stack.enter_context(self._server.client())
            self.client.reset()
            self._threads = self._data_threads()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    @property
    def pid(self) -> int:
        """The server's process."""
        assert self._server.pid is not None
        return self._server.pid

    def start(
        self,
        profile: ASTFProfile | ASTFProfileLight | str,
        multiplier: float = 1.0,
        servers_only: bool = False,
        **tunables: Any,
    ) -> None:
        """Start a profile, or a file with one, in the place of what ran before."""
        if isinstance(profile, str):
            self.client.load_profile(profile, tunables=tunables)
        else:
            self.client.load_profile(profile)
        self.client.clear_stats()
        self.client.start(mult=multiplier, nc=True, client_mask=0 if servers_only else ALL_CLIENTS)

    def start_beside(self, profile: str, multiplier: float = 1.0, **tunables: Any) -> None:
        """Start a second profile from a file, whose flows ``measure`` counts from now on."""
        self._profile = "beside"
        self.client.load_profile(profile, tunables=tunables, pid_input=self._profile)
        self.client.start(mult=multiplier, nc=True, pid_input=self._profile)

    def established(self) -> int:
        """Return how many flows are established now, at the end that knows of fewer."""
        stats = self.client.get_traffic_stats(skip_zero=False)
        return min(int(stats[side]["m_est_flows"]) for side in stats)

    @property
    def memory_bytes(self) -> int:
        """The memory that the server takes now."""
        return resident_bytes(self.pid)

    def stop(self) -> None:
        """Stop what runs, and forget it."""
        self.client.reset()

    def measure(self, seconds: float, warm_s: float = 0.0) -> Window:
        """Return what happens in the next seconds, after some in which pools and windows fill up."""
        time.sleep(warm_s)
        steal, first, active = StealTime(), self.sample(), 0
        until_s = first.at_s + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, _STEP_S if seconds < 3 else 10 * _STEP_S))
            active = max(active, self._active())
        return between(first, self.sample(), active, self.memory_bytes, steal.share())

    def sample(self) -> Sample:
        """Return what was counted until now."""
        before_s, before = time.monotonic(), self._clocks()
        counters = read(self.client, self._profile)
        total = self.client.get_stats()["total"]
        # Counters were read in between, and the clocks went on meanwhile.
        both = zip(before, self._clocks(), strict=True)
        ran_s, server_ran_s, waited_s = ((old + new) / 2 for old, new in both)
        return Sample(
            (before_s + time.monotonic()) / 2,
            ran_s,
            server_ran_s,
            waited_s,
            counters,
            int(total["rx_lost_packets"]),
            int(total["queue_full"]),
        )

    def _active(self) -> int:
        """Return the flows of all profiles now, on the side that has more."""
        stats = self.client.get_traffic_stats(skip_zero=False, is_sum=True)
        return max(int(stats[side]["m_active_flows"]) for side in stats)

    def _clocks(self) -> tuple[float, float, float]:
        """Return how long the data threads ran, all threads ran, and the data threads waited to run."""
        return (
            sum(thread_ran_s(self.pid, thread) for thread in self._threads),
            processes_ran_s([self.pid]),
            sum(thread_waited_s(self.pid, thread) for thread in self._threads),
        )

    def _data_threads(self) -> list[int]:
        """Return the data threads in their order; they may not have their names yet."""
        until_s = time.monotonic() + _NAMED_S
        while time.monotonic() < until_s:
            named = {name: thread for thread, name in threads(self.pid).items()}
            found = sorted((name for name in named if _DATA_THREAD.fullmatch(name)), key=lambda n: int(n[5:]))
            if len(found) == self._cores:
                return [named[name] for name in found]
            time.sleep(0.001)
        raise RuntimeError(f"server {self.pid} has no {self._cores} data threads after {_NAMED_S:g} s")


def threads(pid: int) -> dict[int, str]:
    """Return the threads of a process by their numbers, with their names."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[int(task.name)] = (task / "comm").read_text(encoding="utf-8").strip()
    return found


def thread_ran_s(pid: int, thread: int) -> float:
    """Return how long a thread ran, 0 when it is gone."""
    return _schedstat(pid, thread)[0] / 1e9


def thread_waited_s(pid: int, thread: int) -> float:
    """Return how long a thread was ready to run and did not, because others ran on its CPU."""
    return _schedstat(pid, thread)[1] / 1e9


def _schedstat(pid: int, thread: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return [0, 0]
    return [int(word) for word in text.split()]


def ran_s_of_data_threads(pid: int) -> float:
    """Return how long the data threads of a server ran, together."""
    return sum(
        thread_ran_s(pid, thread) for thread, name in threads(pid).items() if _DATA_THREAD.fullmatch(name)
    )


def processes_ran_s(pids: Iterable[int]) -> float:
    """Return how long all threads of some processes ran that live still."""
    return sum(thread_ran_s(pid, thread) for pid in pids for thread in threads(pid))


def resident_bytes(pid: int) -> int:
    """Return the memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/{pid}/status has no VmRSS")
