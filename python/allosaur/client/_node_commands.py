"""Commands of Linux nodes, put together to a batch: TRex's ``NSCmds``, and what comes of one."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Sequence
from typing import Any

from .._errors import STLArgumentError, STLError

_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")


class NSCmd:
    """One command of a batch."""

    def __init__(self, method: str, **params: Any) -> None:
        self.method = method
        self.params = params

    def get_json(self) -> dict[str, Any]:
        """The command as the server takes it."""
        return {"method": self.method, "params": self.params}

    def get_json_str(self) -> str:
        """The same as text."""
        return json.dumps(self.get_json())


class NSCmds:
    """A batch of commands for the Linux nodes of a port; each method adds one, in this order.

    A node is known by its MAC address. ``STLClient.set_namespace_start`` has the batch done.
    """

    def __init__(self) -> None:
        self.cmds: list[NSCmd] = []

    def add_cmd_obj(self, cmd: NSCmd) -> None:
        """Add a command that is put together already."""
        self.cmds.append(cmd)

    def add_cmd(self, method: str, **arg: Any) -> None:
        """Add a command by its name on the wire."""
        self.cmds.append(NSCmd(method, **arg))

    def clone(self) -> NSCmds:
        """Another batch of the same commands."""
        other = NSCmds()
        other.cmds = list(self.cmds)
        return other

    def add_node(self, mac: str, is_bird: bool = False, shared_ns: str | None = None) -> None:
        """Add a node, in a network namespace of its own or in a shared one (``add_shared_ns``)."""
        if is_bird and shared_ns is not None:
            raise STLError("a node is in the namespace of BIRD or in a shared one, not in both")
        params: dict[str, Any] = {"mac": _mac(mac), "is_bird": is_bird}
        if shared_ns is not None:
            params["shared_ns"] = shared_ns
        self.add_cmd("add_node", **params)

    def add_shared_ns(self) -> None:
        """Add a namespace for several nodes; its result is the namespace's name."""
        self.add_cmd("add_shared_ns")

    def remove_node(self, mac: str) -> None:
        """Remove a node."""
        self.add_cmd("remove_node", mac=_mac(mac))

    def remove_shared_ns(self, shared_ns: str) -> None:
        """Remove a shared namespace without nodes."""
        self.add_cmd("remove_shared_ns", shared_ns=shared_ns)

    def set_dg(self, shared_ns: str, dg: str) -> None:
        """Set the gateway of all nodes of a shared namespace."""
        self.add_cmd("set_dg", shared_ns=shared_ns, dg=_ipv4("dg", dg))

    def set_vlan(
        self, mac: str, vlans: int | Sequence[int], tpids: int | Sequence[int] | None = None
    ) -> None:
        """Set the VLAN tags of a node: none, one or two, the outer first."""
        tags = [vlans] if isinstance(vlans, int) else list(vlans)
        types = [tpids] if isinstance(tpids, int) else None if tpids is None else list(tpids)
        if types is not None and len(types) != len(tags):
            raise STLArgumentError("tpids", tpids, f"one for each of {len(tags)} tags")
        self.add_cmd("set_vlans", mac=_mac(mac), vlans=tags, tpids=types)

    def set_ipv4(
        self,
        mac: str,
        ipv4: str,
        dg: str | None = None,
        subnet: int | None = None,
        shared_ns: bool = False,
    ) -> None:
        """Set the IPv4 address with the gateway ``dg``; in a shared namespace with a prefix, ``subnet``."""
        params: dict[str, Any] = {"mac": _mac(mac), "ipv4": _ipv4("ipv4", ipv4), "shared_ns": shared_ns}
        if shared_ns:
            if subnet is None:
                raise STLArgumentError("subnet", subnet, "the length of the prefix, such as 24")
            params["subnet"] = subnet
        else:
            if dg is None:
                raise STLArgumentError("dg", dg, "the address of the gateway")
            if subnet is not None:
                raise STLArgumentError("subnet", subnet, "none without shared_ns=True")
            params["dg"] = _ipv4("dg", dg)
        self.add_cmd("set_ipv4", **params)

    def clear_ipv4(self, mac: str) -> None:
        """Take the IPv4 address away."""
        self.add_cmd("clear_ipv4", mac=_mac(mac))

    def set_ipv6(
        self,
        mac: str,
        enable: bool,
        src_ipv6: str | None = None,
        subnet: int | None = None,
        shared_ns: bool = False,
    ) -> None:
        """Switch IPv6 on or off; ``src_ipv6`` is an address besides the link-local one."""
        params: dict[str, Any] = {"mac": _mac(mac), "enable": enable, "src_ipv6": ""}
        if shared_ns:
            if (src_ipv6 is None) != (subnet is None):
                raise STLError("give src_ipv6 and subnet of a node in a shared namespace, or neither")
            params["shared_ns"] = True
            if subnet is not None:
                params["subnet"] = subnet
        if src_ipv6 is not None:
            params["src_ipv6"] = _ipv6("src_ipv6", src_ipv6)
        self.add_cmd("set_ipv6", **params)

    def set_mtu(self, mac: str, mtu: int) -> None:
        """Set the MTU of a node."""
        self.add_cmd("set_mtu", mac=_mac(mac), mtu=mtu)

    def set_vlan_filter(self, mac: str, is_no_tcp_udp: bool = True, is_tcp_udp: bool = False) -> None:
        """Choose what a node gets: all but TCP and UDP, these, or both."""
        self.add_cmd("set_vlan_filter", mac=_mac(mac), filter_mask=int(is_no_tcp_udp) + 2 * int(is_tcp_udp))

    def set_filter(self, mac: str, bpf_filter: str) -> None:
        """Choose what a node gets as for tcpdump, without VLAN tags; "" is all."""
        self.add_cmd("set_filter", mac=_mac(mac), filter=bpf_filter)

    def remove_all(self) -> None:
        """Remove all nodes and shared namespaces of the port."""
        self.add_cmd("remove_all")

    def get_nodes(self, only_bird: bool = False) -> None:
        """Ask for the MAC addresses of all nodes."""
        self.add_cmd("get_nodes", only_bird=only_bird)

    def get_nodes_info(self, macs_list: Sequence[str]) -> None:
        """Ask what is known of nodes."""
        self.add_cmd("get_nodes_info", macs=[_mac(mac) for mac in macs_list])

    def clear_counters(self) -> None:
        """Have the port's nodes counted from zero."""
        self.add_cmd("counters_clear")

    def counters_get_meta(self) -> None:
        """Ask what is counted."""
        self.add_cmd("counters_get_meta")

    def counters_get_values(self, zeros: bool = False) -> None:
        """Ask for the counters; with ``zeros`` also for those that are 0."""
        self.add_cmd("counters_get_value", zeros=zeros)

    def get_commands_list(self) -> None:
        """Ask which commands there are."""
        self.add_cmd("get_commands")

    def get_json(self) -> list[dict[str, Any]]:
        """The commands as the server takes them."""
        return [cmd.get_json() for cmd in self.cmds]

    def get_json_str(self) -> str:
        """The same as text."""
        return json.dumps(self.get_json())


class NSCmdResult:
    """The results of a batch."""

    def __init__(self, data: Sequence[Any]) -> None:
        self.data = data

    def is_any_error(self) -> bool:
        """Whether a command failed."""
        return bool(self.errors())

    def errors(self) -> list[str]:
        """What was wrong with those that failed."""
        return [result["error"] for result in self.data if result is not None and "error" in result]


def _mac(value: str) -> str:
    if not isinstance(value, str) or not _MAC.fullmatch(value):
        raise STLArgumentError("mac", value, "a MAC address such as 02:00:00:00:00:01")
    return value


def _ipv4(name: str, value: str) -> str:
    try:
        return str(ipaddress.IPv4Address(value))
    except ValueError as error:
        raise STLArgumentError(name, value, "an IPv4 address such as 192.0.2.1") from error


def _ipv6(name: str, value: str) -> str:
    try:
        return str(ipaddress.IPv6Address(value))
    except ValueError as error:
        raise STLArgumentError(name, value, "an IPv6 address such as 2001:db8::1") from error
