"""What a stateful client does with the network that its clients seem to be in."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...client._neighbors import Neighbors
from ...client._places import DEFAULT_PROFILE, Ports
from .._errors import ASTFError
from .._topology import ASTFTopology, TopoGW, TopoVIF
from ._connection import StatefulConnection

_ARP_TIMEOUT_S = 1.0


class Topology:
    """Virtual interfaces and gateways: loaded here, resolved, and then given to the server."""

    def __init__(self, connection: StatefulConnection, neighbors: Neighbors) -> None:
        self._connection = connection
        self._neighbors = neighbors
        self._topology: ASTFTopology | None = None

    def topo_load(
        self, topology: ASTFTopology | str | Path, tunables: Mapping[str, Any] | None = None
    ) -> None:
        """Take a topology: an object, or a .json, .yaml or .py file.

        ``topo_resolve`` gives it to the server. Raises ``STLError`` when it does not fit together, is
        empty, or one is loaded already.
        """
        if not self._loaded_topology().is_empty():
            raise ASTFError("a topology is loaded already: call topo_clear() first")
        if not isinstance(topology, ASTFTopology):
            topology = ASTFTopology.load(topology, **dict(tunables or {}))
        if topology.is_empty():
            raise ASTFError("the topology is empty: add virtual interfaces or gateways")
        self._check_topology(topology)
        self._topology = topology

    def topo_resolve(self, ports: Ports = None) -> None:
        """Find the MAC of each gateway by ARP, and give the topology to the server.

        With ``ports`` only their gateways are found, and nothing is given to the server. Raises
        ``STLError`` that names gateways that do not answer.
        """
        topology = self._loaded_topology()
        self._check_topology(topology)
        chosen = self._connection.ports_of(ports, self._connection.all_ports, owned=False)
        open_ones = [one for one in topology.gws if one.dst_mac is None and one.trex_port in chosen]
        for port_id in dict.fromkeys(one.trex_port for one in open_ones):
            self._resolve_gateways(port_id, [one for one in open_ones if one.trex_port == port_id], topology)
        silent = sorted({one.dst for one in open_ones if one.dst_mac is None})
        if silent:
            raise ASTFError(f"gateways do not answer: {', '.join(silent)}")
        if ports is None:
            text = json.dumps(topology.to_json(), sort_keys=True)
            self._connection.upload("topo_fragment", DEFAULT_PROFILE, text)

    def topo_clear(self) -> None:
        """Forget the topology, here and on the server."""
        self._topology = ASTFTopology()
        self._connection.owned("topo_clear")

    def topo_show(self, ports: Ports = None) -> None:
        """Print the topology."""
        topology = self._loaded_topology()
        chosen = self._connection.ports_of(ports, self._connection.all_ports, owned=False)
        shown = ASTFTopology(
            [vif for vif in topology.vifs if vif.trex_port in chosen],
            [one for one in topology.gws if one.trex_port in chosen],
        )
        print("The topology is empty." if shown.is_empty() else shown.table())

    def topo_save(self, filename: str | Path) -> None:
        """Write the topology to a .json, .yaml or .py file that ``topo_load`` reads."""
        self._loaded_topology().save(filename)

    def topo_get(self) -> ASTFTopology:
        """The topology that is loaded; after ``connect()`` that of the server."""
        return self._loaded_topology()

    def forget(self) -> None:
        """Read the topology from the server when it is needed again."""
        self._topology = None

    def _loaded_topology(self) -> ASTFTopology:
        if self._topology is None:
            answer = self._connection.call("topo_get")
            self._topology = ASTFTopology.from_json(answer.get("topo_data") or {})
        return self._topology

    def _check_topology(self, topology: ASTFTopology) -> None:
        topology.check()
        ports = self._connection.session().ports
        items: list[TopoVIF | TopoGW] = [*topology.vifs, *topology.gws]
        for item in items:
            if item.trex_port not in ports:
                known = ", ".join(str(port) for port in ports)
                raise ASTFError(
                    f"topology: port_id is '{item.port_id}', the ports of the server are: {known}"
                )
        for one in topology.gws:
            if one.dst_mac is None and not one.sub_if and not self._connection.port(one.trex_port).is_l3:
                raise ASTFError(
                    f"port {one.trex_port} has no IPv4 address to ask for the gateway {one.dst} with: "
                    f"call set_l3_mode() first"
                )
        silent = [
            vif.port_id
            for vif in topology.vifs
            if vif.src_mac != self._connection.port(vif.trex_port).src_mac
            and not self._connection.port(vif.trex_port).has("promiscuous")
        ]
        if silent:
            self._connection.say(
                logging.WARNING,
                f"virtual interfaces {', '.join(silent)} receive nothing unless their port is promiscuous: "
                f"call set_port_attr(promiscuous=True)",
            )

    def _resolve_gateways(self, port_id: int, gateways: list[TopoGW], topology: ASTFTopology) -> None:
        """Ask for gateways by ARP, each once from each interface."""
        from ...services._arp import STLServiceARP

        vifs = {vif.port_id: vif for vif in topology.vifs}
        context = self._neighbors.create_service_ctx(port_id)
        asked: dict[tuple[str, str], tuple[STLServiceARP, list[TopoGW]]] = {}
        for one in gateways:
            if one.needs_ipv6:
                raise ASTFError(f"the gateway {one.dst} has an IPv6 address: give its MAC")
            key = (one.dst, one.port_id)
            if key not in asked:
                asked[key] = self._question(context, one, vifs.get(one.port_id)), []
            asked[key][1].append(one)
        context.run([service for service, _ in asked.values()])
        for service, waiting in asked.values():
            record = service.get_record()
            for one in waiting:
                one.dst_mac = record.dst_mac if record else None

    def _question(self, context: Any, one: TopoGW, vif: TopoVIF | None) -> Any:
        from ...services._arp import STLServiceARP

        if vif is None:
            port = self._connection.port(one.trex_port)
            source, vlan, mac = port.src_ipv4 or "0.0.0.0", list(port.vlan) or None, None
        else:
            source, vlan, mac = vif.src_ipv4, [vif.vlan] if vif.vlan else None, vif.src_mac
        return STLServiceARP(context, one.dst, source, vlan, mac, timeout_sec=_ARP_TIMEOUT_S)
