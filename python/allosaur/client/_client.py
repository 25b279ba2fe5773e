"""The client: one class with every method, for scripts.

    with STLClient(server="127.0.0.1") as client:
        client.reset(ports=[0, 1])
        client.add_streams(stream, ports=[0])
        client.start(ports=[0], mult="5mpps", duration=10)
        client.wait_on_traffic(ports=[0])
        print(client.get_stats()[1]["ipackets"])

Its methods are those of its parts, the other modules of this package; what the parts share is a connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast, overload

from .._console_lines import console_line, methods_of
from .._errors import STLError
from .._not_here import SaysWhatIsMissing
from ..rpc._transport import Transport
from ._capture import Captures
from ._changes import Changes
from ._connection import Connection
from ._delegate import delegate
from ._layers import Layers
from ._log import Log
from ._namespaces import Namespaces
from ._neighbors import Neighbors
from ._not_here import STATELESS_NAMES
from ._ownership import Ownership
from ._pcap import CapturePush
from ._places import ALL_PROFILES, Ports
from ._port import Port
from ._ports import PortAttributes
from ._routes import Routes
from ._server import Server
from ._service_mode import ServiceMode
from ._session import Session
from ._statistics import Statistics
from ._traffic import CORE_MASK_PIN, CORE_MASK_SINGLE, CORE_MASK_SPLIT, Traffic

if TYPE_CHECKING:
    from ..services._client import ServiceClient
    from ..streams._profile import STLProfile
    from ..streams._stream import STLStream

    class AddStreams(Protocol):
        """``add_streams``: `delegate` sees only the first of its overloads."""

        @overload
        def __call__(self, streams: STLStream, ports: Ports = None) -> int: ...
        @overload
        def __call__(self, streams: STLProfile | Sequence[STLStream], ports: Ports = None) -> list[int]: ...


_ClientT = TypeVar("_ClientT", bound="STLClient")


class STLClient(SaysWhatIsMissing):
    """A connection to a server, to own its ports and send traffic.

    ``username`` is who owns the ports (default: the user of this process). ``server`` is a host
    name or address, ``sync_port`` its RPC port, ``async_port`` its publishing port.
    ``verbose_level`` (none, critical, error, warning, info, debug) is how much goes to ``logger``,
    a ``logging.Logger``. ``sync_timeout`` is how long to wait for one answer in seconds (3),
    ``async_timeout`` for a long task of the server (30). ``transport`` replaces the network, for
    tests: see ``allosaur.testing``. ``rpc_auth`` is a file with a line NAME:TOKEN, for a server on
    another machine that asks for one (default: the file that ``ALLOSAUR_RPC_AUTH`` names).

    A method raises ``STLError`` with a message that says what to do; ``STLConnectionError`` when
    the server cannot be reached, ``STLRpcError`` when it refuses. Methods may be called from one
    thread at a time.
    """

    CORE_MASK_SPLIT = CORE_MASK_SPLIT
    CORE_MASK_PIN = CORE_MASK_PIN
    CORE_MASK_SINGLE = CORE_MASK_SINGLE

    _not_here: ClassVar[Mapping[str, str]] = STATELESS_NAMES
    _session_kind: ClassVar[type[Session]] = Session
    _connection_kind: ClassVar[type[Connection]] = Connection
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
        rpc_auth: Path | str | None = None,
    ) -> None:
        self._connection = self._connection_kind(
            *(username, server, sync_port, async_port, verbose_level),
            *(logger, sync_timeout, async_timeout, transport, rpc_auth),
        )
        self.username = self._connection.username
        self._make_parts()

    def _make_parts(self) -> None:
        connection = self._connection
        self._server = Server(connection)
        self._namespaces = Namespaces(self._connection)
        self._routes = Routes(connection)
        self._log = Log(connection)
        self._ownership = Ownership(connection)
        self._statistics = Statistics(connection)
        self._service_mode = self._service_mode_kind(connection)
        self._captures = Captures(connection)
        self._layers = Layers(connection)
        self._traffic = Traffic(connection)
        self._changes = Changes(connection, self._traffic)
        self._capture_push = CapturePush(connection, self._traffic)
        self._neighbors = Neighbors(
            *(connection, self._service_mode, self._captures, self._layers), cast("ServiceClient", self)
        )
        self._ports = PortAttributes(connection, self._neighbors)

    def __enter__(self: _ClientT) -> _ClientT:
        self.connect()
        return self

    def __exit__(self, *exc: object) -> None:
        self.disconnect()

    def connect(self) -> None:
        """Connect to the server; ``get_stats()`` counts from here.

        Raises ``STLError``; the message says where it looked and what to do.
        """
        self.disconnect()
        self._connection.open(self._session_kind, self._begin)

    def _begin(self, session: Session) -> None:
        """Do what else begins with a session."""
        self._statistics.begin(session)

    def disconnect(self, stop_traffic: bool = True, release_ports: bool = True) -> None:
        """Stop the traffic of the ports that are ours, release them, and disconnect.

        Does nothing when not connected. A server that is gone is no error here.
        """
        session = self._connection.live
        if session is None:
            return
        try:
            if session.lost_reason is None:
                self._ownership.let_go(stop_traffic, release_ports)
                session.drain_events()
        except STLError as error:
            self._connection.say(logging.WARNING, f"while disconnecting: {error}")
        finally:
            self._connection.close()

    def get_mode(self) -> str:
        """The kind of traffic that this client is for: "STL", stateless."""
        return "STL"

    @property
    def logger(self) -> logging.Logger:
        """The logger that the client writes to."""
        return self._connection.logger

    @property
    def ports(self) -> dict[int, Port]:
        """The ports of the server, by number, as far as they are known without asking it again."""
        return dict(self._connection.session().ports)

    @property
    def any_port(self) -> Port:
        """One of the ports: the first."""
        return next(iter(self._connection.session().ports.values()))

    @property
    def system_info(self) -> dict[str, Any]:
        """What ``get_server_system_info`` gives (a name that existing scripts use)."""
        return self.get_server_system_info()

    def _server_address(self) -> tuple[str, int, int]:
        """Where the server is: its name, and its ports for requests and events."""
        connection = self._connection
        return connection.server, connection.sync_port, connection.async_port

    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._connection.is_open()

    def ping_rpc_server(self) -> dict[str, Any]:
        """The server's time, ``{"ts": seconds}``. Raises ``STLError`` when it does not answer."""
        return self._connection.ping()

    def get_all_ports(self) -> list[int]:
        """All ports of the server."""
        return self._connection.all_ports()

    def get_acquired_ports(self) -> list[int]:
        """The ports that this client owns."""
        return self._connection.acquired_ports()

    def _service_ports(self, ports: Ports) -> list[int]:
        """Ports of ours that are in service mode. Raises ``STLError`` when one is not."""
        return self._connection.service_ports(ports)

    # The server, and what this one does not do.
    probe_server = delegate("_server", Server.probe_server)
    get_status = delegate("_server", Server.get_status)
    get_metrics = delegate("_server", Server.get_metrics)
    set_global_cfg = delegate("_server", Server.set_global_cfg)
    get_global_cfg = delegate("_server", Server.get_global_cfg)
    set_timeout = delegate("_server", Server.set_timeout)
    server_shutdown = delegate("_server", Server.server_shutdown)
    get_connection_info = delegate("_server", Server.get_connection_info)
    get_server_version = delegate("_server", Server.get_server_version)
    has_both_modes = delegate("_server", Server.has_both_modes)
    get_server_system_info = delegate("_server", Server.get_server_system_info)
    get_server_supported_cmds = delegate("_server", Server.get_server_supported_cmds)
    set_namespace_start = delegate("_namespaces", Namespaces.set_namespace_start)
    set_namespace = delegate("_namespaces", Namespaces.set_namespace)  # type: ignore[arg-type] # of its **args
    namespace_remove_all = delegate("_namespaces", Namespaces.namespace_remove_all)
    wait_for_async_results = delegate("_namespaces", Namespaces.wait_for_async_results)
    is_async_results_ready = delegate("_namespaces", Namespaces.is_async_results_ready)
    cancel_async_task = delegate("_namespaces", Namespaces.cancel_async_task)
    get_ns_nodes = delegate("_namespaces", Namespaces.get_ns_nodes)
    set_bird_node = delegate("_namespaces", Namespaces.set_bird_node)
    routes_add_speaker = delegate("_routes", Routes.routes_add_speaker)
    routes_add_session = delegate("_routes", Routes.routes_add_session)  # type: ignore[arg-type] # of its **fields
    routes_announce = delegate("_routes", Routes.routes_announce)
    routes_withdraw = delegate("_routes", Routes.routes_withdraw)
    routes_flap = delegate("_routes", Routes.routes_flap)
    routes_show = delegate("_routes", Routes.routes_show)
    routes_remove = delegate("_routes", Routes.routes_remove)

    # Events since connect, and messages.
    get_events = delegate("_log", Log.get_events)
    get_warnings = delegate("_log", Log.get_warnings)
    get_info = delegate("_log", Log.get_info)
    clear_events = delegate("_log", Log.clear_events)
    pop_event = delegate("_log", Log.pop_event)
    has_events = delegate("_log", Log.has_events)
    get_verbose = delegate("_log", Log.get_verbose)
    set_verbose = delegate("_log", Log.set_verbose)

    # Ports: who owns them, what they are, what they count.
    acquire = delegate("_ownership", Ownership.acquire)
    release = delegate("_ownership", Ownership.release)
    why_lost = delegate("_ownership", Ownership.why_lost)
    get_port_count = delegate("_ports", PortAttributes.get_port_count)
    get_active_ports = delegate("_ports", PortAttributes.get_active_ports)
    get_transmitting_ports = delegate("_ports", PortAttributes.get_transmitting_ports)
    get_paused_ports = delegate("_ports", PortAttributes.get_paused_ports)
    is_all_ports_acquired = delegate("_ports", PortAttributes.is_all_ports_acquired)
    get_port = delegate("_ports", PortAttributes.get_port)
    get_port_info = delegate("_ports", PortAttributes.get_port_info)
    get_port_attr = delegate("_ports", PortAttributes.get_port_attr)
    set_port_attr = delegate("_ports", PortAttributes.set_port_attr)
    get_resolvable_ports = delegate("_ports", PortAttributes.get_resolvable_ports)
    get_resolved_ports = delegate("_ports", PortAttributes.get_resolved_ports)
    get_stats = delegate("_statistics", Statistics.get_stats)
    clear_stats = delegate("_statistics", Statistics.clear_stats)
    count_since_server_start = delegate("_statistics", Statistics.count_since_server_start)
    clear_pgid_stats = delegate("_statistics", Statistics.clear_pgid_stats)
    get_active_pgids = delegate("_statistics", Statistics.get_active_pgids)
    get_pgid_stats = delegate("_statistics", Statistics.get_pgid_stats)
    get_xstats = delegate("_statistics", Statistics.get_xstats)
    get_util_stats = delegate("_statistics", Statistics.get_util_stats)

    # Streams, start, stop.
    add_streams = cast("AddStreams", delegate("_traffic", Traffic.add_streams))
    add_profile = delegate("_traffic", Traffic.add_profile)  # type: ignore[arg-type] # of its **tunables
    remove_streams = delegate("_traffic", Traffic.remove_streams)
    remove_all_streams = delegate("_traffic", Traffic.remove_all_streams)
    start = delegate("_traffic", Traffic.start)
    stop = delegate("_traffic", Traffic.stop)
    wait_on_traffic = delegate("_traffic", Traffic.wait_on_traffic)
    is_traffic_active = delegate("_traffic", Traffic.is_traffic_active)
    clear_stl_profiles = delegate("_traffic", Traffic.clear_stl_profiles)
    validate_profile_input = delegate("_traffic", Traffic.validate_profile_input)
    get_profiles_with_state = delegate("_traffic", Traffic.get_profiles_with_state)

    # Sending capture files.
    push_pcap = delegate("_capture_push", CapturePush.push_pcap)
    push_remote = delegate("_capture_push", CapturePush.push_remote)

    # Pause, resume, update, and what a profile would send.
    pause = delegate("_changes", Changes.pause)
    resume = delegate("_changes", Changes.resume)
    update = delegate("_changes", Changes.update)
    pause_streams = delegate("_changes", Changes.pause_streams)
    resume_streams = delegate("_changes", Changes.resume_streams)
    update_streams = delegate("_changes", Changes.update_streams)
    validate = delegate("_changes", Changes.validate)

    # Service mode, and what ports receive in it.
    set_service_mode = delegate("_service_mode", ServiceMode.set_service_mode)
    set_service_mode_base = set_service_mode
    service_mode = delegate("_service_mode", ServiceMode.service_mode)
    get_service_enabled_ports = delegate("_service_mode", ServiceMode.get_service_enabled_ports)
    get_service_filtered_ports = delegate("_service_mode", ServiceMode.get_service_filtered_ports)
    set_rx_queue = delegate("_service_mode", ServiceMode.set_rx_queue)
    remove_rx_queue = delegate("_service_mode", ServiceMode.remove_rx_queue)
    get_rx_queue_pkts = delegate("_service_mode", ServiceMode.get_rx_queue_pkts)
    start_capture_port = delegate("_service_mode", ServiceMode.start_capture_port)
    stop_capture_port = delegate("_service_mode", ServiceMode.stop_capture_port)
    set_capture_port_bpf_filter = delegate("_service_mode", ServiceMode.set_capture_port_bpf_filter)

    # Captures of what ports send and receive.
    start_capture = delegate("_captures", Captures.start_capture)
    fetch_capture_packets = delegate("_captures", Captures.fetch_capture_packets)
    stop_capture = delegate("_captures", Captures.stop_capture)
    get_capture_status = delegate("_captures", Captures.get_capture_status)
    clock_offset_s = delegate("_captures", Captures.clock_offset_s)
    endpoint_cb_rsync = delegate("_captures", Captures.endpoint_cb_rsync)
    remove_all_captures = delegate("_captures", Captures.remove_all_captures)

    # Addresses of ports, and pushed packets.
    set_l2_mode = delegate("_layers", Layers.set_l2_mode)
    conf_ipv6 = delegate("_layers", Layers.conf_ipv6)
    set_vlan = delegate("_layers", Layers.set_vlan)
    clear_vlan = delegate("_layers", Layers.clear_vlan)
    set_vxlan = delegate("_layers", Layers.set_vxlan)
    push_packets = delegate("_layers", Layers.push_packets)

    # ARP, ping, scans, maps, and contexts for services.
    create_service_ctx = delegate("_neighbors", Neighbors.create_service_ctx)
    set_l3_mode = delegate("_neighbors", Neighbors.set_l3_mode)
    resolve = delegate("_neighbors", Neighbors.resolve)
    arp = resolve
    ping_ip = delegate("_neighbors", Neighbors.ping_ip)
    scan6 = delegate("_neighbors", Neighbors.scan6)
    map_ports = delegate("_neighbors", Neighbors.map_ports)

    # Commands of the console.
    acquire_line = console_line("acquire")
    clear_stats_line = console_line("clear")
    conf_ipv6_line = console_line("ipv6")
    connect_line = console_line("connect")
    disconnect_line = console_line("disconnect")
    get_events_line = console_line("events")
    global_cfg_line = console_line("global_cfg")
    map_line = console_line("map")
    ns_line = console_line("ns")
    pause_line = console_line("pause")
    ping_line = console_line("ping")
    pkt_line = console_line("pkt")
    profiles_line = console_line("profiles")
    push_line = console_line("push")
    release_line = console_line("release")
    reset_line = console_line("reset")
    resolve_line = console_line("arp")
    resume_line = console_line("resume")
    scan6_line = console_line("scan6")
    service_line = console_line("service")
    set_l2_mode_line = console_line("l2")
    set_l3_mode_line = console_line("l3")
    set_port_attr_line = console_line("portattr")
    set_vlan_line = console_line("vlan")
    show_stats_line = console_line("stats")
    shutdown_line = console_line("shutdown")
    start_line = console_line("start")
    stop_line = console_line("stop")
    streams_line = console_line("streams")
    update_line = console_line("update")

    def get_console_methods(self) -> dict[str, Callable[[str], bool]]:
        """The methods that do commands of the console, by the names of the commands."""
        return methods_of(self)

    # Names that scripts for both kinds of traffic use.
    start_stl = start
    stop_stl = stop
    update_stl = update

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
