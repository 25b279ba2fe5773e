"""What a client does with traffic: streams on ports, start, wait, stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, overload

from .._errors import STLArgumentError, STLError, STLRpcError, STLTimeoutError
from ..streams._multiplier import core_masks, parse_duration, parse_multiplier
from ..streams._profile import STLProfile
from ..streams._stream import STLStream, link
from ._connection import Connection
from ._places import ALL_PROFILES, DEFAULT_PROFILE, PortProfileID, Ports, place, places, without_profile
from ._port import Port, PortProfile
from ._session import at_place

CORE_MASK_SPLIT, CORE_MASK_PIN, CORE_MASK_SINGLE = 1, 2, 3
#: How far ahead a synchronized start lies, so that every port hears of it in time.
_SYNCHRONIZED_START_S = 0.5


class Traffic:
    """Streams, start, stop.

    Where a method takes ``ports``, a number is the port's default profile, "0.name" a profile by
    name, and "0.*" all profiles of the port that have streams.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @overload
    def add_streams(self, streams: STLStream, ports: Ports = None) -> int: ...
    @overload
    def add_streams(self, streams: STLProfile | Sequence[STLStream], ports: Ports = None) -> list[int]: ...
    def add_streams(
        self, streams: STLStream | STLProfile | Sequence[STLStream], ports: Ports = None
    ) -> int | list[int]:
        """Add an ``STLStream``, a list of them, or an ``STLProfile`` to ports.

        A profile that is not there yet is made: ``ports=["0.name"]``. Returns the number of the
        stream, or the list of numbers in the order given. Raises ``STLError``; then ports that
        could not take all streams have some of them.
        """
        wanted = _stream_list(streams)
        chosen = self._new_places(ports)
        ids = self._stream_ids(wanted, list(dict.fromkeys(one.port_id for one in chosen)))
        calls, labels = [], []
        for one in chosen:
            known = self._connection.profile(one).streams
            names = {stream.name: number for number, stream in known.items() if stream.name}
            for number, fields in zip(ids, link(wanted, ids, names), strict=True):
                params = {"profile_id": one.profile_id, "stream_id": number, "stream": fields}
                calls.append(("add_stream", self._connection.owned_params(one.port_id, **params)))
                labels.append((one, number))
        replies = self._connection.session().rpc.batch(calls)
        self._note_streams(dict(zip(ids, wanted, strict=True)), labels, [reply.error for reply in replies])
        return ids[0] if isinstance(streams, STLStream) else ids

    def add_profile(self, filename: str | Path, ports: Ports = None, **tunables: Any) -> list[int]:
        """Load a profile from a file and add its streams to ports. Returns the streams' numbers.

        ``direction`` is the port number modulo 2 unless it is among the ``tunables``.
        """
        numbers: list[int] = []
        for one in self._new_places(ports):
            direction = tunables.get("direction", one.port_id % 2)
            others = {name: value for name, value in tunables.items() if name != "direction"}
            profile = STLProfile.load(filename, direction=direction, port_id=one.port_id, **others)
            numbers = self.add_streams(profile, ports=[one])
        return numbers

    def remove_streams(self, stream_id_list: Any, ports: Ports = None) -> None:
        """Remove streams by number, or the ``STLStream`` that was added."""
        chosen = self._connection.places_of(ports, self.default_places)
        items = stream_id_list if isinstance(stream_id_list, (list, tuple)) else [stream_id_list]
        numbers: list[Any] = [item.id if isinstance(item, STLStream) else item for item in items]
        for number in numbers:
            missing = [_short(one) for one in chosen if number not in self._connection.profile(one).streams]
            if isinstance(number, bool) or not isinstance(number, int) or missing:
                raise STLArgumentError(
                    "stream_id_list", number, f"numbers of streams on port(s) {missing or chosen}"
                )
        for number in numbers:
            self._connection.each_place("remove_stream", chosen, stream_id=number)
            for one in chosen:
                profile = self._connection.profile(one)
                del profile.streams[number]
                if not profile.streams:
                    profile.rest()

    def remove_all_streams(self, ports: Ports = None) -> None:
        """Remove all streams of ports; without ``ports`` of all profiles of all ports that are ours."""
        chosen = self._connection.places_of(
            ports, lambda: self._connection.our_places(lambda profile: profile.is_loaded)
        )
        self._connection.each_place(
            "remove_all_streams", [one for one in chosen if self._connection.profile(one).is_loaded]
        )
        for one in chosen:
            self._connection.profile(one).streams.clear()
            self._connection.profile(one).rest()
            if not self._connection.port(one.port_id).streams:
                self._connection.port(one.port_id).next_stream_id = 1

    def start(
        self,
        ports: Ports = None,
        mult: str | float = "1",
        force: bool = False,
        duration: float | str = -1,
        total: bool = False,
        core_mask: Any = None,
        synchronized: bool = False,
    ) -> None:
        """Start the streams of ports; without ``ports`` of all that are ours.

        ``mult`` is a factor ("1", "2.5") or a rate ("5mpps", "1gbps", "10gbpsl1", "40%") of each
        port; with ``total`` the ports share it. ``duration`` in seconds, -1 until ``stop``.
        ``force`` stops what runs before, and starts although the rate exceeds the line rate or the
        link is down. Either all ports start or none.
        """
        session = self._connection.session()
        chosen = self._connection.places_of(ports, self.default_places)
        if not chosen:
            raise STLError("there is no port to start: call acquire() or reset() first")
        multiplier = parse_multiplier(mult, divide_count=len(chosen) if total else 1)
        masks = core_masks(core_mask, [one.port_id for one in chosen])
        common = {"mul": multiplier, "duration": parse_duration(duration), "force": force}
        # Events of earlier runs must be handled before the ports are counted as sending.
        session.drain_events()
        self._make_startable(chosen, force)
        common["start_at_ts"] = self._connection.ping()["ts"] + _SYNCHRONIZED_START_S if synchronized else 0
        calls = []
        for one, mask in zip(chosen, masks, strict=True):
            params = {"profile_id": one.profile_id, **common, "core_mask": mask}
            calls.append(("start_traffic", self._connection.owned_params(one.port_id, **params)))
        # A short run may end before its reply is here, so "sending" is noted before it begins.
        self.mark(chosen, "TX")
        try:
            replies = session.rpc.batch(calls)
        except BaseException:
            self.mark(chosen, "STREAMS")
            raise
        failed = {
            one: reply.error for one, reply in zip(chosen, replies, strict=True) if reply.error is not None
        }
        if failed:
            self.mark(list(failed), "STREAMS")
            self._halt([one for one in chosen if one not in failed])
            first, error = next(iter(failed.items()))
            raise at_place(error, first)

    def stop(self, ports: Ports = None, rx_delay_ms: int | None = None) -> None:
        """Stop the traffic of ports; without ``ports`` of all of ours that send, all profiles.

        ``rx_delay_ms`` is the time to let packets on their way arrive.
        """
        chosen = self._connection.places_of(ports, lambda: self._connection.our_places(_is_active))
        pushing = self._pushing(ports)
        self._halt(list(dict.fromkeys([*chosen, *map(place, pushing)])))
        for port_id in pushing:
            self._connection.session().refresh(self._connection.port(port_id))
        self._settle(chosen, rx_delay_ms)

    def wait_on_traffic(
        self, ports: Ports = None, timeout: float | None = None, rx_delay_ms: int | None = None
    ) -> None:
        """Wait until the traffic of ports has ended, woken by the server's event.

        A port that is given as a number has ended when all of its profiles have. ``timeout`` in
        seconds. Raises ``STLTimeoutError``, or ``STLConnectionError`` when the server goes away.
        """
        is_active, chosen = self._activity(ports)
        if not self._connection.session().wait(lambda: not is_active(), timeout):
            raise STLTimeoutError(timeout or 0, f"the traffic on port(s) {self._active_ports()}")
        self._settle(chosen, rx_delay_ms)

    def is_traffic_active(self, ports: Ports = None) -> bool:
        """Whether a port sends or is paused; of a port that is given as a number, any profile."""
        return self._activity(ports)[0]()

    def get_profiles_with_state(self, state: str) -> list[PortProfileID]:
        """The profiles of our ports that are "active", "transmitting", "paused" or "streams" (loaded)."""
        kinds: dict[str, Callable[[PortProfile], bool]] = {
            "active": _is_active,
            "transmitting": lambda profile: profile.state in ("TX", "PCAP_TX"),
            "paused": lambda profile: profile.state == "PAUSE",
            "streams": lambda profile: profile.is_loaded,
        }
        if state not in kinds:
            raise STLArgumentError("state", state, list(kinds))
        return self._connection.our_places(kinds[state])

    def validate_profile_input(self, input_profiles: Ports) -> list[PortProfileID]:
        """The profiles of ports that are named, "0.*" as those that port 0 has. Raises ``STLError``."""
        named = places(input_profiles)
        self._connection.check_ports([one.port_id for one in named], owned=False)
        whole = [one.port_id for one in named if one.profile_id == ALL_PROFILES]
        doubled = [one for one in named if one.port_id in whole and one.profile_id != ALL_PROFILES]
        if doubled:
            raise STLArgumentError("input_profiles", str(doubled[0]), f"'{doubled[0].port_id}.*' alone")
        chosen = [
            place(port_id, name) for port_id in whole for name in self._connection.port(port_id).profiles
        ]
        return list(dict.fromkeys([*chosen, *(one for one in named if one.profile_id != ALL_PROFILES)]))

    def clear_stl_profiles(self, ports: Ports = None) -> None:
        """Stop and remove all streams of ports, without ``ports`` of all of ours."""
        chosen: Sequence[int] = self._connection.ports_of(ports, self._connection.acquired_ports)
        active = [port for port in chosen if self._connection.port(port).is_active]
        self._connection.each("stop_traffic", active, profile_id=ALL_PROFILES)
        loaded = [port for port in chosen if self._connection.port(port).streams]
        self._connection.each("remove_all_streams", loaded, profile_id=ALL_PROFILES)
        for port_id in loaded:
            self._connection.port(port_id).forget_streams()

    def default_places(self) -> list[PortProfileID]:
        """The default profiles of our ports."""
        return [place(port_id) for port_id in self._connection.acquired_ports()]

    def _new_places(self, ports: Ports) -> list[PortProfileID]:
        """Where streams are added: profiles that are there, or are made by it. Raises ``STLError``."""
        if ports is None:
            self._connection.session()
            return self.default_places()
        chosen = places(ports)
        self._connection.check_ports([one.port_id for one in chosen], owned=True)
        for one in chosen:
            if one.profile_id == ALL_PROFILES:
                raise STLArgumentError("ports", str(one), f"one profile to add to, like '{one.port_id}.name'")
        return chosen

    def _activity(self, ports: Ports) -> tuple[Callable[[], bool], list[PortProfileID]]:
        """Whether something of these ports is active, and the profiles that this is about."""
        if ports is None:
            whole, named = self._connection.acquired_ports(), []
            self._connection.session()
        else:
            whole = without_profile(ports)
            named = self._connection.places_of(ports, self.default_places)
        named = [one for one in named if one.port_id not in whole]
        everything = [
            place(port_id, name)
            for port_id in whole
            for name in list(self._connection.port(port_id).profiles)
        ]
        waiting: list[Port | PortProfile] = [self._connection.port(port_id) for port_id in whole]
        waiting += [self._connection.profile(one) for one in named]
        return lambda: any(item.is_active for item in waiting), [*everything, *named]

    def _stream_ids(self, streams: list[STLStream], ports: list[int]) -> list[int]:
        """A number for each stream, the same on all ports."""
        free = max((self._connection.port(port_id).next_stream_id for port_id in ports), default=1)
        given = [stream.id for stream in streams]
        if any(number is not None for number in given):
            taken = {number for number in given if number is not None}
            used = [
                number
                for port_id in ports
                for number in self._connection.port(port_id).streams
                if number in taken
            ]
            if used or len(taken) != sum(number is not None for number in given):
                raise STLArgumentError("stream_id", used[0] if used else given, "numbers that are not in use")
            free = max(free, *taken, 0) + (1 if max(taken) >= free else 0)
        ids = []
        for number in given:
            ids.append(free if number is None else number)
            free += 1 if number is None else 0
        return ids

    def _note_streams(
        self,
        streams: dict[int, STLStream],
        labels: list[tuple[PortProfileID, int]],
        errors: list[STLRpcError | None],
    ) -> None:
        refused: STLRpcError | None = None
        for (one, number), error in zip(labels, errors, strict=True):
            port, name = self._connection.port(one.port_id), streams[number].name
            if error is None:
                profile = self._connection.profile(one)
                profile.streams[number] = streams[number]
                port.next_stream_id = max(port.next_stream_id, number + 1)
                if not profile.is_active:
                    profile.rest()
            elif refused is None:
                refused = at_place(error, one, f", stream '{name}'" if name else f", stream {number}")
        if refused is not None:
            raise refused

    def _make_startable(self, chosen: list[PortProfileID], force: bool) -> None:
        active = [one for one in chosen if self._connection.profile(one).is_active]
        if active and not force:
            raise _already_active(active)
        if active:
            self.stop(active)
        empty = [_short(one) for one in chosen if not self._connection.profile(one).is_loaded]
        if empty:
            raise STLError(f"port(s) {empty} have no streams: call add_streams() first")

    def _halt(self, chosen: list[PortProfileID]) -> None:
        self._connection.each_place("stop_traffic", chosen)
        self._connection.session().drain_events()
        self.mark([one for one in chosen if self._connection.profile(one).is_active], "STREAMS")

    def _pushing(self, ports: Ports) -> list[int]:
        """The ports that send a capture of the server's, which belongs to no profile."""
        if ports is None:
            meant = self._connection.acquired_ports()
        else:
            whole = (DEFAULT_PROFILE, ALL_PROFILES)
            meant = [one.port_id for one in places(ports) if one.profile_id in whole]
        return [port_id for port_id in meant if self._connection.port(port_id).is_pushing]

    def _settle(self, chosen: list[PortProfileID], rx_delay_ms: int | None) -> None:
        """Let packets on their way arrive, then end the counting of streams of these profiles."""
        counting = [
            one
            for one in chosen
            if any(stream.has_flow_stats() for stream in self._connection.profile(one).streams.values())
        ]
        if rx_delay_ms is None and counting:
            rx_delay_ms = (
                100 if any(self._connection.port(one.port_id).is_virtual for one in counting) else 10
            )
        if rx_delay_ms:
            time.sleep(rx_delay_ms / 1000)
        self._connection.each_place("remove_rx_filters", counting)

    def _active_ports(self) -> list[int]:
        ports = self._connection.session().ports.items()
        return [port_id for port_id, port in ports if port.is_active and port.is_acquired]

    def mark(self, chosen: list[PortProfileID], state: str) -> None:
        """Note a state that the server's events will confirm."""
        with self._connection.session().changed:
            for one in chosen:
                self._connection.profile(one).state = state
            self._connection.session().changed.notify_all()


def _is_active(profile: PortProfile) -> bool:
    return profile.is_active


def _short(where: PortProfileID) -> int | str:
    """A place as one would write it: the number alone where the profile has no name."""
    return where.port_id if where == place(where.port_id) else str(where)


def _already_active(active: list[PortProfileID]) -> STLError:
    shown = [_short(one) for one in active]
    return STLError(f"port(s) {shown} already send: call stop() first, or give force=True")


def _stream_list(streams: Any) -> list[STLStream]:
    if isinstance(streams, STLProfile):
        return streams.get_streams()
    if isinstance(streams, Iterable) and not isinstance(streams, (str, bytes)):
        streams = list(streams)
        if not streams:
            raise STLArgumentError("streams", streams, "at least one stream")
    return STLProfile(streams).get_streams()
