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

from typing import Any

from ..._errors import STLArgumentError
from ...client._places import ALL_PROFILES, Ports
from ...client._service_mode import ALL_MASK, NO_TCP_UDP_MASK
from ._clients import ClientsMethods
from ._counters import CounterMethods
from ._latency import LatencyMethods
from ._runs import RunMethods
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
        self._close_ears(ports)
        if any(
            self._connection.port(port).is_service or self._connection.port(port).is_service_filtered
            for port in ports
        ):
            self.set_service_mode(enabled=False)
        if restart:
            self.set_port_attr(ports, link_up=False)
            self.set_port_attr(ports, link_up=True)

    def set_service_mode(
        self,
        ports: Ports = None,
        enabled: bool = True,
        filtered: bool = False,
        mask: int | None = None,
    ) -> None:
        """Switch service mode of the whole server; ``ports`` is accepted: existing scripts give it.

        In service mode ports answer ARP and ping, and packets can be captured and queued. ``filtered``
        shows only the protocols of ``mask``, beside traffic at full rate: the sum of 1 (all but TCP and
        UDP, which must be in it), 2 BGP, 4 DHCP, 8 what a transport stack of the client has open,
        16 mDNS; 255 is all. Raises ``STLError``.
        """
        for name, value in (("enabled", enabled), ("filtered", filtered)):
            if not isinstance(value, bool):
                raise STLArgumentError(name, value, [True, False])
        fields: dict[str, Any] = {"enabled": enabled and not filtered, "filtered": filtered}
        if filtered:
            is_mask = isinstance(mask, int) and not isinstance(mask, bool) and 0 < mask <= ALL_MASK
            if not is_mask or not (mask or 0) & NO_TCP_UDP_MASK:
                raise STLArgumentError("mask", mask, f"1 to {ALL_MASK}, with 1 (all but TCP and UDP) in it")
            fields["mask"] = mask
        elif mask is not None:
            raise STLArgumentError("mask", mask, "no mask, or filtered=True with it")
        self._owned("service", **fields)
        self._refresh(self.get_all_ports())
