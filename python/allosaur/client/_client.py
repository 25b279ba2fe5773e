"""The client: one class with every method, for scripts.

    with STLClient(server="127.0.0.1") as client:
        client.reset(ports=[0, 1])
        client.add_streams(stream, ports=[0])
        client.start(ports=[0], mult="5mpps", duration=10)
        client.wait_on_traffic(ports=[0])
        print(client.get_stats()[1]["ipackets"])

Its methods are in the other modules of this package, by subject; the handshake and the state that events
keep are in ``_session``.
"""

from __future__ import annotations

from operator import attrgetter

from ._changes import Changes
from ._delegate import delegate
from ._line import ConsoleLine
from ._pcap import CapturePush
from ._places import ALL_PROFILES, Ports
from ._ports import PortMethods
from ._traffic import Traffic

_TRAFFIC = attrgetter("_traffic")
_CAPTURE_PUSH = attrgetter("_capture_push")
_CHANGES = attrgetter("_changes")
_CONSOLE_LINE = attrgetter("_console_line")


class STLClient(PortMethods):
    """A connection to a server, to own its ports and send traffic.

    ``username`` is who owns the ports (default: the user of this process). ``server`` is a host
    name or address, ``sync_port`` its RPC port, ``async_port`` its publishing port.
    ``verbose_level`` (none, critical, error, warning, info, debug) is how much goes to ``logger``,
    a ``logging.Logger``. ``sync_timeout`` is how long to wait for one answer in seconds (3),
    ``async_timeout`` for a long task of the server (30). ``transport`` replaces the network, for
    tests: see ``allosaur.testing``.

    A method raises ``STLError`` with a message that says what to do; ``STLConnectionError`` when
    the server cannot be reached, ``STLRpcError`` when it refuses. Methods may be called from one
    thread at a time.
    """

    # Streams, start, stop.
    add_streams = delegate(_TRAFFIC, Traffic.add_streams)
    add_profile = delegate(_TRAFFIC, Traffic.add_profile)  # type: ignore[arg-type] # of its **tunables
    remove_streams = delegate(_TRAFFIC, Traffic.remove_streams)
    remove_all_streams = delegate(_TRAFFIC, Traffic.remove_all_streams)
    start = delegate(_TRAFFIC, Traffic.start)
    stop = delegate(_TRAFFIC, Traffic.stop)
    wait_on_traffic = delegate(_TRAFFIC, Traffic.wait_on_traffic)
    is_traffic_active = delegate(_TRAFFIC, Traffic.is_traffic_active)
    get_profiles_with_state = delegate(_TRAFFIC, Traffic.get_profiles_with_state)

    # Sending capture files.
    push_pcap = delegate(_CAPTURE_PUSH, CapturePush.push_pcap)
    push_remote = delegate(_CAPTURE_PUSH, CapturePush.push_remote)

    # Pause, resume, update, and what a profile would send.
    pause = delegate(_CHANGES, Changes.pause)
    resume = delegate(_CHANGES, Changes.resume)
    update = delegate(_CHANGES, Changes.update)
    pause_streams = delegate(_CHANGES, Changes.pause_streams)
    resume_streams = delegate(_CHANGES, Changes.resume_streams)
    update_streams = delegate(_CHANGES, Changes.update_streams)
    validate = delegate(_CHANGES, Changes.validate)

    # Commands of TRex's console.
    start_line = delegate(_CONSOLE_LINE, ConsoleLine.start_line)

    # Names that scripts for both kinds of traffic use.
    start_stl = start
    stop_stl = stop
    update_stl = update

    def __enter__(self) -> STLClient:
        self.connect()
        return self

    def reset(self, ports: Ports = None, restart: bool = False) -> None:
        """Take ports by force and make them as they were at first.

        Traffic stops, streams and captures go, statistics begin at zero, promiscuous mode, receive
        queues, capture ports and service mode are off. Addresses stay. ``restart`` also puts the link
        down and up again.
        """
        session = self._connection.session()
        chosen = self._connection.ports_of(ports, self.get_all_ports, owned=False)
        self.acquire(chosen, force=True, sync_streams=False)
        active = [port for port in chosen if self._connection.port(port).is_active]
        self._connection.each("stop_traffic", active, profile_id=ALL_PROFILES)
        for port_id in chosen:
            session.refresh(self._connection.port(port_id))
        loaded = [port for port in chosen if self._connection.port(port).state != "IDLE"]
        self._connection.each("remove_all_streams", loaded, profile_id=ALL_PROFILES)
        for port_id in chosen:
            self._connection.port(port_id).forget_streams()
        self.clear_stats(chosen)
        plain = [port for port in chosen if self._connection.port(port).info.get("is_prom_supported")]
        if plain:
            self.set_port_attr(plain, promiscuous=False)
        self._close_listeners(chosen)
        if "service" in session.supported_commands:
            self.set_service_mode(chosen, enabled=False)
        if restart:
            self.set_port_attr(chosen, link_up=False)
            self.set_port_attr(chosen, link_up=True)

    def _close_listeners(self, ports: list[int]) -> None:
        """Take away what listens on ports: queues, capture ports, captures."""
        known = self._connection.session().supported_commands
        if "set_rx_feature" in known:
            self._connection.each("set_rx_feature", ports, type="queue", enabled=False)
        if "stop_capture_port" in known:
            self._connection.each(
                "stop_capture_port", [port for port in ports if self._connection.port(port).has_capture_port]
            )
        if "capture" in known:
            self._captures.remove_captures_of(ports)
