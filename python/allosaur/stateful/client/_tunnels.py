"""What a stateful client asks about tunnels (GTP-U); a server that has none refuses, and says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..._errors import STLArgumentError, STLError, STLTypeError
from ...client._places import DEFAULT_PROFILE
from .._topology import read_data
from ._connection import StatefulConnection

#: The one kind of tunnel there is: GTP-U.
GTPU = 1


class Tunnel:
    """The tunnel of a client: outer addresses, UDP source port, tunnel number, IP version (4 or 6)."""

    def __init__(self, sip: str, dip: str, sport: int, teid: int, version: int) -> None:
        self.sip, self.dip, self.sport, self.teid, self.version = sip, dip, sport, teid, version

    def to_json(self, client_ip: int) -> dict[str, Any]:
        """The tunnel of a client in the words of the protocol."""
        names = ("sip", "dip", "sport", "teid", "version")
        return {"client_ip": client_ip, **{name: getattr(self, name) for name in names}}


class Tunnels:
    """Tunnels around clients."""

    def __init__(self, connection: StatefulConnection) -> None:
        self._connection = connection

    def is_tunnel_supported(self, tunnel_type: int = GTPU) -> dict[str, Any]:
        """Whether the server can: ``is_tunnel_supported``, and ``error_msg`` why not."""
        answer: dict[str, Any] = self._connection.call("is_tunnel_supported", tunnel_type=tunnel_type)
        return answer

    def activate_tunnel(self, tunnel_type: int = GTPU, activate: bool = True, loopback: bool = False) -> bool:
        """Switch tunnels on or off, while no profile is loaded.

        ``loopback`` lets server ports learn the tunnels and answer in them. Raises ``STLError`` with the
        server's reason when it cannot.
        """
        _check_kind(tunnel_type)
        if activate:
            self._check_support(tunnel_type)
        self._connection.call(
            "activate_tunnel_mode", tunnel_type=tunnel_type, activate=bool(activate), loopback=bool(loopback)
        )
        return True

    def update_tunnel_client_record(self, client_list: Mapping[int, Any], tunnel_type: int = GTPU) -> None:
        """Give clients, by their address as a number, other tunnels: ``Tunnel`` objects."""
        _check_kind(tunnel_type)
        records = [Tunnel.to_json(tunnel, client) for client, tunnel in client_list.items()]
        self._connection.call("update_tunnel_client", tunnel_type=tunnel_type, attr=records)

    def tunnels_topo_load(
        self, topology: Mapping[str, Any] | str | Path, tunables: Mapping[str, Any] | None = None
    ) -> None:
        """Give the server tunnels for ranges of clients: a dictionary, or a .json or .yaml file of it.

        ``{"tunnels": [{"src_start", "src_end", "initial_teid", "teid_jump", "sport", "version",
        "tunnel_type", "src_ip", "dst_ip", "activate"}], "latency": [{"client_port_id", "client_ip",
        "server_ip"}]}``. ``tunables`` are accepted. Raises ``STLError`` when the server has no tunnels.
        """
        self._check_support(GTPU)
        data = read_data(Path(topology)) if isinstance(topology, (str, Path)) else topology
        if not isinstance(data, Mapping):
            raise STLTypeError("topology", type(topology), [dict, str])
        text = json.dumps(dict(data), sort_keys=True)
        self._connection.upload("tunnel_topo_fragment", DEFAULT_PROFILE, text)

    def tunnels_topo_clear(self) -> None:
        """Forget the tunnels of ``tunnels_topo_load``."""
        self._connection.owned("tunnel_topo_clear")

    def tunnels_topo_get(self) -> dict[str, Any]:
        """The tunnels of the server, as ``tunnels_topo_load`` takes them."""
        answer = self._connection.call("tunnel_topo_get")
        data: dict[str, Any] = json.loads(answer.get("tunnel_topo_data") or "{}")
        return data

    def tunnels_topo_show(self) -> None:
        """Print the tunnels of the server."""
        print(json.dumps(self.tunnels_topo_get(), indent=2))

    def _check_support(self, tunnel_type: int) -> None:
        answer = self.is_tunnel_supported(tunnel_type)
        if not answer.get("is_tunnel_supported"):
            raise STLError(f"the server has no tunnels: {answer.get('error_msg') or 'it gives no reason'}")


def _check_kind(tunnel_type: int) -> None:
    if tunnel_type != GTPU:
        raise STLArgumentError("tunnel_type", tunnel_type, "1, which is GTP-U")
