"""The stateful client: one class with every method, for scripts.

    with ASTFClient(server="127.0.0.1") as client:
        client.reset()
        client.load_profile("profiles/stateful/http.py")
        client.start(mult=100, duration=10)
        client.wait_on_traffic()
        print(client.get_stats()["traffic"])

Its methods are in the other modules of this package, by subject, and in those of the stateless client.
"""

from __future__ import annotations

from operator import attrgetter

from ...client._delegate import delegate
from ...client._places import ALL_PROFILES
from ._clients import ClientsMethods
from ._counters import CounterMethods
from ._latency import LatencyMethods
from ._runs import RunMethods
from ._service_mode import StatefulServiceMode
from ._topology import TopologyMethods
from ._tunnels import TunnelMethods


class ASTFClient(RunMethods, LatencyMethods, CounterMethods, TopologyMethods, ClientsMethods, TunnelMethods):
    """A connection to a server for stateful traffic, to own it and run profiles.

    The arguments are those of ``STLClient``. There is one owner of all ports. Profiles have names, "_"
    where none is given, and run side by side; methods take them as ``pid_input``. Stateless streams may
    run beside: ``add_streams``, ``start_stl``, ``stop_stl``, ``update_stl``, ``wait_on_traffic_stl``.

    A method raises ``STLError`` with a message that says what to do; ``STLConnectionError`` when the
    server cannot be reached, ``STLRpcError`` when it refuses, ``ASTFError`` when an argument cannot be
    used. Methods may be called from one thread at a time.
    """

    _service_mode_kind = StatefulServiceMode
    set_service_mode = delegate(attrgetter("_service_mode"), StatefulServiceMode.set_service_mode)

    def __enter__(self) -> ASTFClient:
        self.connect()
        return self

    def reset(self, restart: bool = False) -> None:  # type: ignore[override]
        """Take the server by force and make it as it was at first.

        Traffic stops, profiles, streams and captures go, statistics begin at zero, promiscuous mode,
        receive queues, capture ports and service mode are off. Addresses stay. ``restart`` also puts
        the links down and up again.
        """
        self.acquire(force=True)
        ports = self.get_all_ports()
        self.clear_stl_profiles(ports)
        self.stop(pid_input=ALL_PROFILES)
        self.stop_latency()
        for profile_id in self._pids(ALL_PROFILES):
            self._rest_first(profile_id)
        self.clear_profile(pid_input=ALL_PROFILES)
        self._forget_counters()
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
