"""What a client does with traffic: streams on ports, start, wait, stop."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ._client_base import DEFAULT_PROFILE, Ports
from ._client_ports import PortMethods
from ._errors import STLArgumentError, STLError, STLRpcError, STLTimeoutError
from ._multiplier import core_masks, parse_duration, parse_multiplier
from ._profile import STLProfile
from ._session import with_port
from ._stream import STLStream, link

#: How far ahead a synchronized start lies, so that every port hears of it in time.
_SYNCHRONIZED_START_S = 0.5


class TrafficMethods(PortMethods):
    """Streams, start, stop."""

    def reset(self, ports: Ports = None, restart: bool = False) -> None:
        """Take ports by force, stop their traffic, remove their streams, clear statistics.

        ``restart`` also puts the link down and up again.
        """
        session = self._session()
        chosen = self._ports(ports, self.get_all_ports, owned=False)
        self.acquire(chosen, force=True, sync_streams=False)
        self._each("stop_traffic", [port for port in chosen if self._port(port).is_active])
        for port_id in chosen:
            session.refresh(self._port(port_id))
        self._each("remove_all_streams", [port for port in chosen if self._port(port).state != "IDLE"])
        for port_id in chosen:
            self._port(port_id).forget_streams()
        self.clear_stats(chosen)
        plain = [port for port in chosen if self._port(port).info.get("is_prom_supported")]
        if plain:
            self.set_port_attr(plain, promiscuous=False)
        if restart:
            self.set_port_attr(chosen, link_up=False)
            self.set_port_attr(chosen, link_up=True)

    def add_streams(self, streams: Any, ports: Ports = None) -> Any:
        """Add an ``STLStream``, a list of them, or an ``STLProfile`` to ports.

        Returns the number of the stream, or the list of numbers in the order given. Raises
        ``STLError``; then ports that could not take all streams have some of them.
        """
        wanted = _stream_list(streams)
        chosen = self._ports(ports, self.get_acquired_ports)
        ids = self._stream_ids(wanted, chosen)
        calls, labels = [], []
        for port_id in chosen:
            names = {
                stream.name: number for number, stream in self._port(port_id).streams.items() if stream.name
            }
            for number, fields in zip(ids, link(wanted, ids, names), strict=True):
                params = self._owned_params(
                    port_id, profile_id=DEFAULT_PROFILE, stream_id=number, stream=fields
                )
                calls.append(("add_stream", params))
                labels.append((port_id, number))
        replies = self._session().rpc.batch(calls)
        self._note_streams(dict(zip(ids, wanted, strict=True)), labels, [reply.error for reply in replies])
        return ids[0] if isinstance(streams, STLStream) else ids

    def add_profile(self, filename: str | Path, ports: Ports = None, **tunables: Any) -> Any:
        """Load a profile from a file and add its streams to ports. Returns the streams' numbers.

        ``direction`` is the port number modulo 2 unless it is among the ``tunables``.
        """
        chosen = self._ports(ports, self.get_acquired_ports)
        numbers: list[int] = []
        for port_id in chosen:
            direction = tunables.get("direction", port_id % 2)
            others = {name: value for name, value in tunables.items() if name != "direction"}
            profile = STLProfile.load(filename, direction=direction, port_id=port_id, **others)
            numbers = self.add_streams(profile, ports=[port_id])
        return numbers

    def remove_streams(self, stream_id_list: Any, ports: Ports = None) -> None:
        """Remove streams by number, or the ``STLStream`` that was added."""
        chosen = self._ports(ports, self.get_acquired_ports)
        items = stream_id_list if isinstance(stream_id_list, (list, tuple)) else [stream_id_list]
        numbers: list[Any] = [item.id if isinstance(item, STLStream) else item for item in items]
        for number in numbers:
            missing = [port for port in chosen if number not in self._port(port).streams]
            if isinstance(number, bool) or not isinstance(number, int) or missing:
                raise STLArgumentError(
                    "stream_id_list", number, f"numbers of streams on port(s) {missing or chosen}"
                )
        for number in numbers:
            self._each("remove_stream", chosen, stream_id=number)
            for port_id in chosen:
                port = self._port(port_id)
                del port.streams[number]
                port.state = port.state if port.streams else "IDLE"

    def remove_all_streams(self, ports: Ports = None) -> None:
        """Remove all streams of ports."""
        chosen = self._ports(ports, self.get_acquired_ports)
        self._each("remove_all_streams", [port for port in chosen if self._port(port).state != "IDLE"])
        for port_id in chosen:
            self._port(port_id).forget_streams()

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
        session = self._session()
        chosen = self._ports(ports, self.get_acquired_ports)
        if not chosen:
            raise STLError("there is no port to start: call acquire() or reset() first")
        multiplier = parse_multiplier(mult, divide_count=len(chosen) if total else 1)
        seconds, masks = parse_duration(duration), core_masks(core_mask, chosen)
        # Events of earlier runs must be handled before the ports are counted as sending.
        session.drain_events()
        self._make_startable(chosen, force)
        start_at = self.ping_rpc_server()["ts"] + _SYNCHRONIZED_START_S if synchronized else 0
        common = {"profile_id": DEFAULT_PROFILE, "mul": multiplier, "duration": seconds, "force": force}
        calls = [
            ("start_traffic", self._owned_params(port_id, **common, core_mask=mask, start_at_ts=start_at))
            for port_id, mask in zip(chosen, masks, strict=True)
        ]
        # A short run may end before its reply is here, so "sending" is noted before it begins.
        self._set_state(chosen, "TX")
        try:
            replies = session.rpc.batch(calls)
        except BaseException:
            self._set_state(chosen, "STREAMS")
            raise
        failed = {
            port: reply.error for port, reply in zip(chosen, replies, strict=True) if reply.error is not None
        }
        if failed:
            self._set_state(list(failed), "STREAMS")
            self._halt([port for port in chosen if port not in failed])
            port_id, error = next(iter(failed.items()))
            raise with_port(error, port_id)

    def stop(self, ports: Ports = None, rx_delay_ms: int | None = None) -> None:
        """Stop the traffic of ports; without ``ports`` of all of ours that send.

        ``rx_delay_ms`` is the time to let packets on their way arrive.
        """
        chosen = self._ports(ports, self.get_active_ports)
        self._halt(chosen)
        self._settle(chosen, rx_delay_ms)

    def wait_on_traffic(
        self, ports: Ports = None, timeout: float | None = None, rx_delay_ms: int | None = None
    ) -> None:
        """Wait until the traffic of ports has ended, woken by the server's event.

        ``timeout`` in seconds. Raises ``STLTimeoutError``, or ``STLConnectionError`` when the
        server goes away.
        """
        chosen = self._ports(ports, self.get_acquired_ports)
        waiting = [self._port(port_id) for port_id in chosen]
        if not self._session().wait(lambda: not any(port.is_active for port in waiting), timeout):
            raise STLTimeoutError(timeout or 0, f"the traffic on port(s) {self.get_active_ports()}")
        self._settle(chosen, rx_delay_ms)

    def is_traffic_active(self, ports: Ports = None) -> bool:
        """Whether a port sends or is paused."""
        chosen = self._ports(ports, self.get_acquired_ports)
        return any(self._port(port_id).is_active for port_id in chosen)

    def _stream_ids(self, streams: list[STLStream], ports: list[int]) -> list[int]:
        """A number for each stream, the same on all ports."""
        free = max((self._port(port_id).next_stream_id for port_id in ports), default=1)
        given = [stream.id for stream in streams]
        if any(number is not None for number in given):
            taken = {number for number in given if number is not None}
            used = [number for port_id in ports for number in self._port(port_id).streams if number in taken]
            if used or len(taken) != sum(number is not None for number in given):
                raise STLArgumentError("stream_id", used[0] if used else given, "numbers that are not in use")
            free = max(free, *taken, 0) + (1 if max(taken) >= free else 0)
        ids = []
        for number in given:
            ids.append(free if number is None else number)
            free += 1 if number is None else 0
        return ids

    def _note_streams(
        self, streams: dict[int, STLStream], labels: list[tuple[int, int]], errors: list[STLRpcError | None]
    ) -> None:
        refused: STLRpcError | None = None
        for (port_id, number), error in zip(labels, errors, strict=True):
            port, name = self._port(port_id), streams[number].name
            if error is None:
                port.streams[number] = streams[number]
                port.next_stream_id = max(port.next_stream_id, number + 1)
                port.state = "STREAMS" if port.state == "IDLE" else port.state
            elif refused is None:
                label = f"stream '{name}'" if name else f"stream {number}"
                refused = STLRpcError(
                    error.method, error.code, error.text, where=f"port {port_id}, {label}: "
                )
        if refused is not None:
            raise refused

    def _make_startable(self, ports: list[int], force: bool) -> None:
        active = [port for port in ports if self._port(port).is_active]
        if active and not force:
            raise STLError(f"port(s) {active} already send: call stop() first, or give force=True")
        if active:
            self.stop(active)
        empty = [port for port in ports if self._port(port).state == "IDLE"]
        if empty:
            raise STLError(f"port(s) {empty} have no streams: call add_streams() first")

    def _halt(self, ports: list[int]) -> None:
        self._each("stop_traffic", ports)
        self._session().drain_events()
        self._set_state([port for port in ports if self._port(port).is_active], "STREAMS")

    def _set_state(self, ports: list[int], state: str) -> None:
        with self._session().changed:
            for port_id in ports:
                self._port(port_id).state = state
            self._session().changed.notify_all()


def _stream_list(streams: Any) -> list[STLStream]:
    if isinstance(streams, STLProfile):
        return streams.get_streams()
    if isinstance(streams, Iterable) and not isinstance(streams, (str, bytes)):
        streams = list(streams)
        if not streams:
            raise STLArgumentError("streams", streams, "at least one stream")
    return STLProfile(streams).get_streams()
