"""What every client has: a connection, the event log, and parts whose methods are the client's."""

from __future__ import annotations

import logging
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, cast

from .._errors import STLArgumentError, STLError
from ..rpc._events import Event
from ..rpc._transport import Transport
from ._capture import Captures
from ._changes import Changes
from ._connection import LEVELS, Connection
from ._delegate import delegate
from ._layers import Layers
from ._line import ConsoleLine
from ._neighbors import Neighbors
from ._pcap import CapturePush
from ._places import ALL_PROFILES, Ports
from ._service_mode import ServiceMode
from ._session import Session
from ._traffic import CORE_MASK_PIN, CORE_MASK_SINGLE, CORE_MASK_SPLIT, Traffic

if TYPE_CHECKING:
    from ..services._client import ServiceClient

_SERVICE_MODE = attrgetter("_service_mode")
_CAPTURES = attrgetter("_captures")
_LAYERS = attrgetter("_layers")
_NEIGHBORS = attrgetter("_neighbors")


class ClientBase:
    """Connecting, disconnecting, the event log."""

    CORE_MASK_SPLIT = CORE_MASK_SPLIT
    CORE_MASK_PIN = CORE_MASK_PIN
    CORE_MASK_SINGLE = CORE_MASK_SINGLE

    _session_kind: ClassVar[type[Session]] = Session
    _service_mode_kind: ClassVar[type[ServiceMode]] = ServiceMode

    def __init__(
        self,
        username: str | None = None,
        server: str = "localhost",
        sync_port: int = 4501,
        async_port: int = 4500,
        verbose_level: str = "error",
        logger: logging.Logger | None = None,
        sync_timeout: float | None = None,
        async_timeout: float | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._connection = Connection(
            *(username, server, sync_port, async_port, verbose_level),
            *(logger, sync_timeout, async_timeout, transport),
        )
        self.username = self._connection.username
        self._service_mode = self._service_mode_kind(self._connection)
        self._captures = Captures(self._connection)
        self._layers = Layers(self._connection)
        self._traffic = Traffic(self._connection)
        self._changes = Changes(self._connection, self._traffic)
        self._capture_push = CapturePush(self._connection, self._traffic)
        self._console_line = ConsoleLine(self._connection, self._traffic)
        self._neighbors = Neighbors(
            *(self._connection, self._service_mode, self._captures, self._layers), cast("ServiceClient", self)
        )

    def __enter__(self) -> Any:
        self.connect()
        return self

    def __exit__(self, *exc: object) -> None:
        self.disconnect()

    def connect(self) -> None:
        """Connect to the server. Raises ``STLError``; the message says where it looked and what to do."""
        self.disconnect()
        self._connection.open(self._session_kind)

    def disconnect(self, stop_traffic: bool = True, release_ports: bool = True) -> None:
        """Stop the traffic of the ports that are ours, release them, and disconnect.

        Does nothing when not connected. A server that is gone is no error here.
        """
        session, owned = self._connection.live, self.get_acquired_ports()
        if session is None:
            return
        try:
            if session.lost_reason is None:
                if stop_traffic:
                    active = [port for port in owned if session.ports[port].is_active]
                    self._connection.each("stop_traffic", active, profile_id=ALL_PROFILES)
                if release_ports:
                    self._connection.each("release", owned)
                session.drain_events()
        except STLError as error:
            self._connection.say(logging.WARNING, f"while disconnecting: {error}")
        finally:
            self._connection.close()

    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._connection.is_open()

    def ping_rpc_server(self) -> dict[str, Any]:
        """The server's time, ``{"ts": seconds}``. Raises ``STLError`` when it does not answer."""
        return self._connection.ping()

    def server_shutdown(self, force: bool = False) -> None:
        """End the server. ``force`` does it although others own ports."""
        self._connection.session().rpc.call("shutdown", user=self.username, force=force)

    def get_connection_info(self) -> dict[str, Any]:
        """Server, ports and user of the connection."""
        self._connection.session()
        return {
            "username": self.username,
            "server": self._connection.server,
            "sync_port": self._connection.sync_port,
            "async_port": self._connection.async_port,
        }

    def get_server_version(self) -> dict[str, Any]:
        """What the server says of its version."""
        return dict(self._connection.session().version)

    def get_server_system_info(self) -> dict[str, Any]:
        """What the server says of its machine, cores and ports."""
        return dict(self._connection.session().system_info)

    def get_server_supported_cmds(self) -> list[str]:
        """The methods that the server knows."""
        return sorted(self._connection.session().supported_commands)

    def get_events(self, ev_type_filter: str | list[str] | None = None) -> list[Event]:
        """What happened since connect, oldest first; optionally only 'info' or 'warning'."""
        if self._connection.live is None:
            wanted = [ev_type_filter] if isinstance(ev_type_filter, str) else ev_type_filter
            return [event for event in self._connection.last_log if not wanted or event.ev_type in wanted]
        return self._connection.live.log.events(ev_type_filter)

    def get_warnings(self) -> list[Event]:
        """The warnings since connect."""
        return self.get_events("warning")

    def get_info(self) -> list[Event]:
        """The events that are not warnings."""
        return self.get_events("info")

    def clear_events(self) -> None:
        """Forget the events."""
        self._connection.last_log = []
        if self._connection.live is not None:
            self._connection.live.log.clear()

    def pop_event(self) -> Event | None:
        """Take the oldest event out of the log."""
        return self._connection.live.log.pop() if self._connection.live is not None else None

    def has_events(self) -> bool:
        """Whether the log has events that ``pop_event`` would give."""
        return bool(self.get_events())

    @property
    def logger(self) -> logging.Logger:
        """The logger that the client writes to."""
        return self._connection.logger

    def get_verbose(self) -> str:
        """How much is written to the logger: what ``set_verbose`` set."""
        return next(name for name, level in LEVELS.items() if level == self._connection.level)

    def set_verbose(self, level: str) -> None:
        """How much is written to the logger: none, critical, error, warning, info or debug."""
        if level not in LEVELS:
            raise STLArgumentError("level", level, list(LEVELS))
        self._connection.level = LEVELS[level]

    def get_acquired_ports(self) -> list[int]:
        """The ports that this client owns."""
        return self._connection.acquired_ports()

    # Service mode, and what ports receive in it.
    set_service_mode = delegate(_SERVICE_MODE, ServiceMode.set_service_mode)
    service_mode = delegate(_SERVICE_MODE, ServiceMode.service_mode)
    get_service_enabled_ports = delegate(_SERVICE_MODE, ServiceMode.get_service_enabled_ports)
    get_service_filtered_ports = delegate(_SERVICE_MODE, ServiceMode.get_service_filtered_ports)
    set_rx_queue = delegate(_SERVICE_MODE, ServiceMode.set_rx_queue)
    remove_rx_queue = delegate(_SERVICE_MODE, ServiceMode.remove_rx_queue)
    get_rx_queue_pkts = delegate(_SERVICE_MODE, ServiceMode.get_rx_queue_pkts)
    start_capture_port = delegate(_SERVICE_MODE, ServiceMode.start_capture_port)
    stop_capture_port = delegate(_SERVICE_MODE, ServiceMode.stop_capture_port)
    set_capture_port_bpf_filter = delegate(_SERVICE_MODE, ServiceMode.set_capture_port_bpf_filter)

    # Captures of what ports send and receive.
    start_capture = delegate(_CAPTURES, Captures.start_capture)
    fetch_capture_packets = delegate(_CAPTURES, Captures.fetch_capture_packets)
    stop_capture = delegate(_CAPTURES, Captures.stop_capture)
    get_capture_status = delegate(_CAPTURES, Captures.get_capture_status)
    clock_offset_s = delegate(_CAPTURES, Captures.clock_offset_s)
    remove_all_captures = delegate(_CAPTURES, Captures.remove_all_captures)

    # Addresses of ports, and pushed packets.
    set_l2_mode = delegate(_LAYERS, Layers.set_l2_mode)
    conf_ipv6 = delegate(_LAYERS, Layers.conf_ipv6)
    set_vlan = delegate(_LAYERS, Layers.set_vlan)
    clear_vlan = delegate(_LAYERS, Layers.clear_vlan)
    push_packets = delegate(_LAYERS, Layers.push_packets)

    # ARP, ping, scans, maps, and contexts for services.
    create_service_ctx = delegate(_NEIGHBORS, Neighbors.create_service_ctx)
    set_l3_mode = delegate(_NEIGHBORS, Neighbors.set_l3_mode)
    resolve = delegate(_NEIGHBORS, Neighbors.resolve)
    arp = resolve
    ping_ip = delegate(_NEIGHBORS, Neighbors.ping_ip)
    scan6 = delegate(_NEIGHBORS, Neighbors.scan6)
    map_ports = delegate(_NEIGHBORS, Neighbors.map_ports)

    def _service_ports(self, ports: Ports) -> list[int]:
        """Ports of ours that are in service mode. Raises ``STLError`` when one is not."""
        return self._connection.service_ports(ports)
