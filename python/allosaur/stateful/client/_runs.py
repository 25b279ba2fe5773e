"""What a stateful client does with traffic: start, wait, change the rate, stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ..._errors import STLError, STLTimeoutError
from ...client._places import ALL_PROFILES, DEFAULT_PROFILE, Ports
from ...client._ports import PortAttributes
from ...client._traffic import Traffic
from .._arguments import U32_MAX, number, whole
from ._connection import Pids, StatefulConnection
from ._profiles import Profiles
from ._session import TRANSIENT, State, Watch

_FOREVER = -1
_FLOW_INFO_INTERVAL_S = 1.0


class Runs:
    """Traffic of profiles."""

    def __init__(
        self, connection: StatefulConnection, traffic: Traffic, ports: PortAttributes, profiles: Profiles
    ) -> None:
        self._connection = connection
        self._traffic = traffic
        self._ports = ports
        self._profiles = profiles

    def start(
        self,
        mult: float = 1,
        duration: float = _FOREVER,
        nc: bool = False,
        block: bool = True,
        latency_pps: int = 0,
        ipv6: bool = False,
        pid_input: Pids = DEFAULT_PROFILE,
        client_mask: int = U32_MAX,
        e_duration: float = 0,
        t_duration: float = 0,
        dump_interval: float = 0,
    ) -> None:
        """Start profiles that are loaded.

        ``mult`` is what the flows a second of all templates are multiplied by. For ``duration`` seconds
        (-1 until ``stop``) new flows begin; then those that are open may end, unless ``nc``, for at most
        ``t_duration`` seconds (0: as long as it takes). ``e_duration`` is how long to wait for the first
        flow to be established. ``latency_pps`` packets a second measure latency beside. ``ipv6`` uses
        the tunables ``ipv6``. ``client_mask`` are the client ports that take part, bit by bit.
        ``dump_interval`` seconds lie between two records of ``get_flow_info``.

        With ``block`` it returns when traffic runs. Raises ``STLError`` with what the server says, else.
        """
        fields = {
            "mult": number("start", "mult", mult, 0, 1e9),
            "nc": bool(nc),
            "duration": number("start", "duration", duration, _FOREVER, 1e9),
            "latency_pps": whole("start", "latency_pps", latency_pps, 0, U32_MAX),
            "ipv6": bool(ipv6),
            "client_mask": whole("start", "client_mask", client_mask, 0, U32_MAX),
            "e_duration": number("start", "e_duration", e_duration, 0, 1e9),
            "t_duration": number("start", "t_duration", t_duration, 0, 1e9),
            "dump_interval": number("start", "dump_interval", dump_interval, 0, 1e9),
        }
        self._connection.handler()
        for profile_id in self._connection.pids(pid_input, known=False):
            self._connection.session().drain_events()
            self.rest_first(profile_id)
            self._profiles.check_loaded(profile_id)
            with self._connection.session().watch(profile_id) as watch:
                self._connection.owned("start", profile_id=profile_id, **fields)
                if block:
                    self._connection.wait_for(lambda: _is_decided(watch), f"starting '{profile_id}'")
                    _check_started(profile_id, watch)
                else:
                    self._connection.session().drain_events()

    def stop(self, block: bool = True, pid_input: Pids = DEFAULT_PROFILE, is_remove: bool = False) -> None:
        """Stop profiles; "*" is all of them. With ``is_remove`` they are cleared, too.

        Without ``block`` it returns at once, and traffic ends a little later.
        """
        for profile_id in self._connection.pids(pid_input):
            self._connection.session().drain_events()
            self._wait_until_not(profile_id, (State.PARSE, State.BUILD), f"starting '{profile_id}'")
            if self._connection.state_of(profile_id) == State.TX:
                with self._connection.session().watch(profile_id) as watch:
                    self._connection.owned("stop", profile_id=profile_id)
                    if block or is_remove:
                        self._connection.wait_for(lambda one=watch: one.rests, f"stopping '{profile_id}'")  # type: ignore[misc]
            if is_remove:
                self.rest_first(profile_id)
                self._profiles.clear_profile(block, profile_id)

    def update(self, mult: float, pid_input: Pids = DEFAULT_PROFILE) -> None:
        """Change the multiplier of profiles that run; it replaces the one they have.

        "*" is all that run.
        """
        factor = number("update", "mult", mult, 0, 1e9)
        chosen = self._connection.pids(pid_input)
        if ALL_PROFILES in pid_input:
            chosen = [profile_id for profile_id in chosen if self._connection.is_busy(profile_id)]
        for profile_id in chosen:
            self._connection.owned("update", profile_id=profile_id, mult=factor)

    def wait_on_traffic(self, timeout: float | None = None, profile_id: str | None = None) -> None:
        """Wait until traffic has ended and its flows are closed, woken by the server's events.

        Without ``profile_id`` that of all profiles, and stateless streams, too. ``timeout`` in seconds.
        Raises ``STLTimeoutError``, or ``STLConnectionError`` when the server goes away.
        """
        session = self._connection.session()
        session.drain_events()
        if profile_id is not None:
            self._connection.pids(profile_id)

        def is_over() -> bool:
            return not (self._connection.is_busy(profile_id) if profile_id else self.is_traffic_active())

        if not session.wait(is_over, timeout):
            raise STLTimeoutError(timeout or 0, f"the traffic of profile '{profile_id or ALL_PROFILES}'")

    def is_traffic_active(self, ports: Ports = None) -> bool:
        """Whether a profile runs, or stateless streams on ports of ours."""
        return self._connection.is_busy() or self._traffic.is_traffic_active(ports)

    def get_active_ports(self, owned: bool = True) -> list[int]:
        """The ports that have traffic: all while a profile runs."""
        if self._connection.is_busy():
            return self._connection.acquired_ports() if owned else self._connection.all_ports()
        return self._ports.get_active_ports(owned)

    def get_flow_info(
        self, profile_id: str = DEFAULT_PROFILE, duration: float = 0, index: int | None = None
    ) -> dict[str, Any]:
        """What TCP knows of flows: for each "address:port-address:port" a list of records.

        A run records it every ``dump_interval`` seconds (see ``start``). Records are gathered for
        ``duration`` seconds, or until the run is over; with ``index`` those from that number on, and
        ``next_index`` is where to go on. A record has times in milliseconds (rto, rtt, rttvar,
        last_data_recv, duration), sizes in bytes (snd_cwnd, snd_ssthresh, snd_wnd, rcv_space, snd_mss),
        and what was sent again or came out of order (snd_rexmitpack, rcv_ooopack, snd_zerowin).
        """
        flows: dict[str, Any] = {}
        following = index or 0
        end_s = time.monotonic() + duration
        while self._connection.state_of(profile_id) != State.IDLE:
            answer = self._connection.call("get_flow_info", profile_id=profile_id, index=following)
            for records in answer or []:
                for flow, record in records.items():
                    if flow == "index":
                        following = record + 1
                    else:
                        flows.setdefault(flow, []).append(record)
            left_s = end_s - time.monotonic()
            if left_s <= 0 or (flows and self._connection.state_of(profile_id) == State.LOADED):
                break
            time.sleep(min(_FLOW_INFO_INTERVAL_S, left_s))
        return flows if index is None else {**flows, "next_index": following}

    def validate_profile_id_input(self, pid_input: Pids = DEFAULT_PROFILE, start: bool = False) -> list[str]:
        """The profiles that an argument names; with ``start`` new ones may be among them, and none may run.

        Raises ``STLError``.
        """
        named = self._connection.pids(pid_input, known=not start)
        busy = [profile_id for profile_id in named if start and self._connection.is_busy(profile_id)]
        if busy:
            raise STLError(f"profile '{busy[0]}' runs: call stop() and wait_on_traffic() first")
        return named

    def check_states(self, ok_states: Sequence[int]) -> None:
        """Wait until the server as a whole is in one of these states (``STATE_IDLE``, ``STATE_TX``, ...)."""
        self._wait_until(None, lambda state: state in ok_states, None)

    def wait_for_steady(self, profile_id: str | None = None) -> int:
        """Wait until a profile, or the server as a whole, is on no way between two states; the state then."""
        return self._wait_until(profile_id, lambda state: state not in TRANSIENT, None)

    def wait_for_transient(self, profile_id: str | None = None) -> int:
        """Wait until a profile, or the server as a whole, is on its way between two states; which it is."""
        return self._wait_until(profile_id, lambda state: state in TRANSIENT, None)

    def wait_for_profile_state(self, profile_id: str, wait_state: int, timeout: float | None = None) -> None:
        """Wait until a profile is in a state (``STATE_TX``, ...), however short.

        ``timeout`` in seconds. Raises ``STLTimeoutError``.
        """
        self._wait_until(profile_id, lambda state: state == wait_state, timeout)

    def _wait_until(
        self, profile_id: str | None, is_wanted: Callable[[int], bool], timeout_s: float | None
    ) -> int:
        """Wait for a state of a profile, or without one of the server, and give it."""
        session = self._connection.session()
        with session.watch(profile_id or ALL_PROFILES) as watch:
            session.drain_events()

            def seen() -> list[int]:
                now = self._connection.state_of(profile_id) if profile_id else session.state
                return [state for state in [*watch.states, now] if is_wanted(state)]

            if not session.wait(lambda: bool(seen()), timeout_s):
                what = f"profile '{profile_id}'" if profile_id else "the server"
                raise STLTimeoutError(timeout_s or 0, f"the state of {what}")
            return seen()[-1]

    def rest_first(self, profile_id: str) -> None:
        """Let a profile finish what it ends by itself: its flows, and its removal."""
        self._wait_until_not(profile_id, (State.CLEANUP, State.DELETE), f"the end of '{profile_id}'")

    def _wait_until_not(self, profile_id: str, states: tuple[State, ...], what: str) -> None:
        self._connection.wait_for(lambda: self._connection.state_of(profile_id) not in states, what)


def _has_started(watch: Watch) -> bool:
    return State.TX in watch.states


def _is_decided(watch: Watch) -> bool:
    """Whether a profile runs, or will not: it came to rest after the server had begun with it."""
    has_begun = any(state in (State.PARSE, State.BUILD) for state in watch.states)
    return _has_started(watch) or watch.error is not None or watch.is_cleared or (has_begun and watch.rests)


def _check_started(profile_id: str, watch: Watch) -> None:
    """Refuse what came to rest without having run. Raises ``STLError``."""
    if _has_started(watch):
        return
    reason = watch.error or "the server gave no reason"
    raise STLError(f"profile '{profile_id}' did not start: {reason}")
