"""The stateful client: one class with every method, for scripts.

    with ASTFClient(server="127.0.0.1") as client:
        client.reset()
        client.load_profile("profiles/stateful/http.py")
        client.start(mult=100, duration=10)
        client.wait_on_traffic()
        print(client.get_stats()["traffic"])

Its methods are those of its parts, which are the other modules of this package, and the stateless client's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ..._console_lines import console_line
from ...client._client import STLClient
from ...client._connection import Connection
from ...client._delegate import delegate
from ...client._places import ALL_PROFILES
from ...client._service_mode import ServiceMode
from ...client._session import Session
from ._clients import Clients
from ._connection import StatefulConnection
from ._counters import Counters
from ._latency import Latency
from ._not_here import STATEFUL_NAMES
from ._ownership import StatefulOwnership
from ._profiles import Profiles
from ._runs import Runs
from ._service_mode import StatefulServiceMode
from ._session import TRANSIENT, State, StatefulSession
from ._topology import Topology
from ._tunnels import Tunnels


class _Methods:
    """The methods of the parts.

    Some take other parameters than those of the stateless client that have the same name: scripts for TRex
    count on both.
    """

    acquire = delegate("_ownership", StatefulOwnership.acquire)
    release = delegate("_ownership", StatefulOwnership.release)
    set_service_mode = delegate("_service_mode", StatefulServiceMode.set_service_mode)

    # Profiles, and their runs.
    load_profile = delegate("_profiles", Profiles.load_profile)
    clear_profile = delegate("_profiles", Profiles.clear_profile)
    get_profiles = delegate("_profiles", Profiles.get_profiles)
    get_profiles_state = delegate("_profiles", Profiles.get_profiles_state)
    get_traffic_distribution = delegate("_profiles", Profiles.get_traffic_distribution)
    inc_epoch = delegate("_profiles", Profiles.inc_epoch)
    start = delegate("_runs", Runs.start)
    stop = delegate("_runs", Runs.stop)
    update = delegate("_runs", Runs.update)
    wait_on_traffic = delegate("_runs", Runs.wait_on_traffic)
    is_traffic_active = delegate("_runs", Runs.is_traffic_active)
    get_active_ports = delegate("_runs", Runs.get_active_ports)
    get_flow_info = delegate("_runs", Runs.get_flow_info)
    validate_profile_id_input = delegate("_runs", Runs.validate_profile_id_input)
    check_states = delegate("_runs", Runs.check_states)
    wait_for_steady = delegate("_runs", Runs.wait_for_steady)
    wait_for_transient = delegate("_runs", Runs.wait_for_transient)
    wait_for_profile_state = delegate("_runs", Runs.wait_for_profile_state)

    # Stateless streams beside them.
    start_stl = STLClient.start_stl
    stop_stl = STLClient.stop_stl
    update_stl = STLClient.update_stl
    wait_on_traffic_stl = STLClient.wait_on_traffic
    get_stats_stl = STLClient.get_stats

    # Counters and latency.
    get_stats = delegate("_counters", Counters.get_stats)
    count_since_server_start = delegate("_counters", Counters.count_since_server_start)
    clear_stats = delegate("_counters", Counters.clear_stats)
    get_traffic_stats = delegate("_counters", Counters.get_traffic_stats)
    clear_traffic_stats = delegate("_counters", Counters.clear_traffic_stats)
    is_traffic_stats_error = delegate("_counters", Counters.is_traffic_stats_error)
    get_dynamic_traffic_stats = delegate("_counters", Counters.get_dynamic_traffic_stats)
    clear_dynamic_traffic_stats = delegate("_counters", Counters.clear_dynamic_traffic_stats)
    is_dynamic_traffic_stats_error = delegate("_counters", Counters.is_dynamic_traffic_stats_error)
    get_tg_names = delegate("_counters", Counters.get_tg_names)
    get_traffic_tg_stats = delegate("_counters", Counters.get_traffic_tg_stats)
    get_flow_rates = delegate("_counters", Counters.get_flow_rates)
    get_flow_outcomes = delegate("_counters", Counters.get_flow_outcomes)
    start_latency = delegate("_latency", Latency.start_latency)
    stop_latency = delegate("_latency", Latency.stop_latency)
    update_latency = delegate("_latency", Latency.update_latency)
    get_latency_stats = delegate("_latency", Latency.get_latency_stats)

    # Topology, tunnels, and single clients.
    topo_load = delegate("_topology", Topology.topo_load)
    topo_resolve = delegate("_topology", Topology.topo_resolve)
    topo_clear = delegate("_topology", Topology.topo_clear)
    topo_show = delegate("_topology", Topology.topo_show)
    topo_save = delegate("_topology", Topology.topo_save)
    topo_get = delegate("_topology", Topology.topo_get)
    is_tunnel_supported = delegate("_tunnels", Tunnels.is_tunnel_supported)
    activate_tunnel = delegate("_tunnels", Tunnels.activate_tunnel)
    update_tunnel_client_record = delegate("_tunnels", Tunnels.update_tunnel_client_record)
    tunnels_topo_load = delegate("_tunnels", Tunnels.tunnels_topo_load)
    tunnels_topo_clear = delegate("_tunnels", Tunnels.tunnels_topo_clear)
    tunnels_topo_get = delegate("_tunnels", Tunnels.tunnels_topo_get)
    tunnels_topo_show = delegate("_tunnels", Tunnels.tunnels_topo_show)
    set_client_enable = delegate("_clients", Clients.set_client_enable)
    set_client_enable_range = delegate("_clients", Clients.set_client_enable_range)
    get_clients_info = delegate("_clients", Clients.get_clients_info)
    get_clients_info_range = delegate("_clients", Clients.get_clients_info_range)
    set_ignored_macs_ips = delegate("_clients", Clients.set_ignored_macs_ips)
    get_ignored_macs_ips = delegate("_clients", Clients.get_ignored_macs_ips)

    # Commands of the console.
    activate_tunnel_line = console_line("tunnel")
    black_list_line = console_line("black_list")
    latency_line = console_line("latency")
    start_stl_line = console_line("start_stl")
    stats_stl_line = console_line("stats_stl")
    stop_stl_line = console_line("stop_stl")
    template_group_line = console_line("template_group")
    topo_line = console_line("topo")
    tunnels_topo_line = console_line("tunnels_topo")
    update_clients_tunnel = console_line("update_tunnel")
    update_stl_line = console_line("update_stl")


class ASTFClient(_Methods, STLClient):  # type: ignore[misc]
    """A connection to a server for stateful traffic, to own it and run profiles.

    The arguments are those of ``STLClient``. There is one owner of all ports. Profiles have names, "_"
    where none is given, and run side by side; methods take them as ``pid_input``. Stateless streams may
    run beside: ``add_streams``, ``start_stl``, ``stop_stl``, ``update_stl``, ``wait_on_traffic_stl``.

    A method raises ``STLError`` with a message that says what to do; ``STLConnectionError`` when the
    server cannot be reached, ``STLRpcError`` when it refuses, ``ASTFError`` when an argument cannot be
    used. Methods may be called from one thread at a time.
    """

    STATE_IDLE: ClassVar[int] = int(State.IDLE)
    STATE_ASTF_LOADED: ClassVar[int] = int(State.LOADED)
    STATE_ASTF_PARSE: ClassVar[int] = int(State.PARSE)
    STATE_ASTF_BUILD: ClassVar[int] = int(State.BUILD)
    STATE_TX: ClassVar[int] = int(State.TX)
    STATE_ASTF_CLEANUP: ClassVar[int] = int(State.CLEANUP)
    STATE_ASTF_DELETE: ClassVar[int] = int(State.DELETE)
    transient_states: ClassVar[list[int]] = sorted(map(int, TRANSIENT))
    """The states that a profile leaves by itself."""

    _not_here: ClassVar[Mapping[str, str]] = STATEFUL_NAMES
    _session_kind: ClassVar[type[Session]] = StatefulSession
    _connection_kind: ClassVar[type[Connection]] = StatefulConnection
    _service_mode_kind: ClassVar[type[ServiceMode]] = StatefulServiceMode
    _connection: StatefulConnection

    def _make_parts(self) -> None:
        super()._make_parts()
        connection = self._connection
        self._profiles = Profiles(connection)
        self._runs = Runs(connection, self._traffic, self._ports, self._profiles)
        self._ownership = StatefulOwnership(connection, self._runs)
        self._latency = Latency(connection)
        self._counters = Counters(connection, self._statistics, self._latency)
        self._topology = Topology(connection, self._neighbors)
        self._clients = Clients(connection)
        self._tunnels = Tunnels(connection)

    def _begin(self, session: Session) -> None:
        super()._begin(session)
        assert isinstance(session, StatefulSession)  # the kind that this client opens
        self._counters.begin(session)

    def disconnect(self, stop_traffic: bool = True, release_ports: bool = True) -> None:
        """Stop all traffic if the server is ours, release it, and disconnect.

        Does nothing when not connected. A server that is gone is no error here.
        """
        super().disconnect(stop_traffic, release_ports)
        self._topology.forget()

    def get_mode(self) -> str:
        """The kind of traffic that this client is for: "ASTF", stateful."""
        return "ASTF"

    @property
    def state(self) -> int:
        """The state of the server as a whole, as a number: the highest of its profiles."""
        return self._connection.session().state

    @property
    def epoch(self) -> int:
        """The number of the server's epoch."""
        return self._connection.session().epoch

    @property
    def astf_profile_state(self) -> dict[str, int]:
        """The states of the profiles as numbers; ``get_profiles_state`` has their names."""
        return dict(self._connection.session().profiles)

    def sync(self) -> dict[str, int]:
        """Read the states of all profiles, as numbers; see ``get_profiles_state`` for their names."""
        self._connection.session().sync()
        return dict(self._connection.session().profiles)

    def reset(  # type: ignore[override]
        self, restart: bool = False, ports: Sequence[int] | None = None
    ) -> None:
        """Take the server by force and make it as it was at first.

        ``ports`` are those to take, as for ``acquire``; without it those that are ours, else all.

        Traffic stops, profiles, streams and captures go, statistics begin at zero, promiscuous mode,
        receive queues, capture ports and service mode are off. Addresses stay. ``restart`` also puts
        the links down and up again.
        """
        self.acquire(force=True, ports=ports or self._ports_to_reset())
        ports = self.get_acquired_ports()
        self.clear_stl_profiles(ports)
        self.stop(pid_input=ALL_PROFILES)
        self.stop_latency()
        for profile_id in self._connection.pids(ALL_PROFILES):
            self._runs.rest_first(profile_id)
        self.clear_profile(pid_input=ALL_PROFILES)
        self._counters.forget()
        self.clear_stats(ports, pid_input=ALL_PROFILES)
        self.clear_dynamic_traffic_stats()
        plain = [port for port in ports if self._connection.port(port).info.get("is_prom_supported")]
        if plain:
            self.set_port_attr(plain, promiscuous=False)
        self._close_listeners(ports)
        if any(
            self._connection.port(port).is_service or self._connection.port(port).is_service_filtered
            for port in ports
        ):
            self.set_service_mode(enabled=False)
        if restart:
            self.set_port_attr(ports, link_up=False)
            self.set_port_attr(ports, link_up=True)

    def _ports_to_reset(self) -> list[int] | None:
        """Ours, of a server whose other ports can be in stateless mode; else None, for all."""
        return (self.get_acquired_ports() or None) if self.has_both_modes() else None
