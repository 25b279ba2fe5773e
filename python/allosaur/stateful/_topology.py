"""The network that clients seem to be in: virtual interfaces, and gateways for their addresses.

A client finds the MAC addresses of its gateways before a run.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .._errors import STLProfileError
from ..streams._loader import as_keywords, located_module, read_text
from ._arguments import as_number, ipv4, of_kind, whole
from ._errors import ASTFError, ASTFErrorBadMac

_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_PLACE = re.compile(r"(\d+)(?:\.(\d+))?")
SUB_INTERFACES_MAX = 100_000
_VLAN_MAX = 4096
_VNI_MAX = (1 << 24) - 1


class TopoVIF:
    """A virtual interface of a port, "0.2" is the second of port 0: its MAC, addresses and VLAN.

    Clients whose gateway is on it send with its MAC and VLAN. With ``vxlan``, a number or
    ``{"vni": 100, "remote": "192.0.2.2"}``, they are in that network of VXLAN, behind the end of the port's
    tunnel (``set_vxlan``), where these MAC addresses are then; TRex's servers do not know it. Raises
    ``ASTFError``.
    """

    def __init__(
        self,
        port_id: str,
        src_mac: str,
        src_ipv4: str = "",
        src_ipv6: str = "",
        vlan: int | None = 0,
        vxlan: int | Mapping[str, Any] | None = None,
    ) -> None:
        self.port_id = port_id
        self.trex_port, self.sub_if = _place("TopoVIF", port_id)
        if not self.sub_if:
            raise ASTFError(
                f"TopoVIF: port_id is {port_id!r}, give the port and a number from 1, such as '0.1'"
            )
        self.src_mac = _mac("TopoVIF", "src_mac", src_mac)
        self.src_ipv4 = ipv4("TopoVIF", "src_ipv4", src_ipv4) if src_ipv4 else ""
        self.src_ipv6 = src_ipv6
        if src_ipv6 and not _is_ipv6(src_ipv6):
            raise ASTFError(f"TopoVIF: src_ipv6 is {src_ipv6!r}, give an IPv6 address")
        self.vlan = whole("TopoVIF", "vlan", vlan or 0, 0, _VLAN_MAX)
        self.vxlan = None if vxlan is None else _vxlan(vxlan)

    def to_json(self, for_server: bool = True) -> dict[str, Any]:
        """The words of the protocol, or those of files."""
        fields: dict[str, Any] = {
            "src_mac": self.src_mac,
            "src_ipv4": self.src_ipv4,
            "src_ipv6": self.src_ipv6,
            "vlan": self.vlan,
        }
        if self.vxlan is not None:
            fields["vxlan"] = self.vxlan
        return {**fields, **_named(self, for_server)}

    def to_code(self) -> str:
        """The call that makes it."""
        arguments = (self.port_id, self.src_mac, self.src_ipv4, self.src_ipv6, self.vlan)
        tunnel = [] if self.vxlan is None else [f"vxlan={self.vxlan!r}"]
        return f"TopoVIF({', '.join([*map(repr, arguments), *tunnel])})"


class TopoGW:
    """Where clients from ``src_start`` to ``src_end`` send to: a MAC, or an address that is asked for it.

    ``port_id`` is a client port, or one of its virtual interfaces. Raises ``ASTFError``.
    """

    def __init__(
        self, port_id: str, src_start: str, src_end: str, dst: str, dst_mac: str | None = ""
    ) -> None:
        self.port_id = port_id
        self.trex_port, self.sub_if = _place("TopoGW", port_id)
        if self.trex_port % 2:
            raise ASTFError(
                f"TopoGW: port_id is {port_id!r}, a server's port: give a client's, which is even"
            )
        self.src_start, self.src_end = (
            ipv4("TopoGW", name, value) for name, value in (("src_start", src_start), ("src_end", src_end))
        )
        if as_number(self.src_start) > as_number(self.src_end):
            raise ASTFError(f"TopoGW: src_start {src_start} comes after src_end {src_end}: swap them")
        self.dst = dst
        is_mac = isinstance(dst, str) and bool(_MAC.fullmatch(dst))
        if not is_mac and not _is_address(dst):
            raise ASTFError(f"TopoGW: dst is {dst!r}, give a MAC, IPv4 or IPv6 address")
        if is_mac and dst_mac and dst_mac != dst:
            raise ASTFError(f"TopoGW: dst {dst} and dst_mac {dst_mac} differ: leave dst_mac out")
        #: The MAC of the gateway; None while it is not known.
        self.dst_mac: str | None = dst if is_mac else (dst_mac or None)

    @property
    def needs_ipv6(self) -> bool:
        """Whether the gateway is asked for by neighbor discovery."""
        return self.dst_mac is None and _is_ipv6(self.dst)

    def to_json(self, for_server: bool = True) -> dict[str, Any]:
        """The words of the protocol, or those of files."""
        fields: dict[str, Any] = {"src_start": self.src_start, "src_end": self.src_end, "dst": self.dst}
        if for_server:
            fields["dst_mac"] = self.dst_mac
        return {**fields, **_named(self, for_server)}

    def to_code(self) -> str:
        """The call that makes it."""
        return f"TopoGW({self.port_id!r}, {self.src_start!r}, {self.src_end!r}, {self.dst!r})"


class ASTFTopology:
    """Virtual interfaces and gateways. Raises ``ASTFError`` when they do not fit together."""

    def __init__(self, vifs: Iterable[TopoVIF] | None = None, gws: Iterable[TopoGW] | None = None) -> None:
        self.vifs: list[TopoVIF] = []
        self.gws: list[TopoGW] = []
        for vif in vifs or []:
            self.add_vif_obj(vif)
        for gateway in gws or []:
            self.add_gw_obj(gateway)

    def add_vif_obj(self, vif: TopoVIF) -> None:
        """Add a virtual interface."""
        of_kind("ASTFTopology", "vif", vif, TopoVIF)
        self.vifs.append(vif)

    def add_gw_obj(self, gw: TopoGW) -> None:
        """Add a gateway."""
        of_kind("ASTFTopology", "gw", gw, TopoGW)
        self.gws.append(gw)

    def add_vif(self, *arguments: Any, **fields: Any) -> None:
        """Make and add a virtual interface; ``trex_port`` and ``sub_if`` may stand for ``port_id``."""
        self.add_vif_obj(TopoVIF(*arguments, **_with_port_id(fields)))

    def add_gw(self, *arguments: Any, **fields: Any) -> None:
        """Make and add a gateway; ``trex_port`` and ``sub_if`` may stand for ``port_id``."""
        self.add_gw_obj(TopoGW(*arguments, **_with_port_id(fields)))

    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return not self.vifs and not self.gws

    def check(self) -> None:
        """Refuse what does not fit together: ranges that overlap, two interfaces of one name."""
        known: dict[str, TopoVIF] = {}
        macs: dict[tuple[int, str], TopoVIF] = {}
        for vif in self.vifs:
            mac = (vif.trex_port, vif.src_mac.lower())
            if vif.port_id in known or mac in macs:
                what = vif.port_id if vif.port_id in known else f"MAC {vif.src_mac}"
                raise ASTFError(f"two virtual interfaces have the same {what}: give each its own")
            known[vif.port_id] = macs[mac] = vif
        ordered = sorted(self.gws, key=lambda one: as_number(one.src_start))
        for one, other in itertools.pairwise(ordered):
            if as_number(one.src_end) >= as_number(other.src_start):
                raise ASTFError(
                    f"the ranges of two gateways overlap: {one.src_start} to {one.src_end}, and "
                    f"{other.src_start} to {other.src_end}"
                )
        for gateway in self.gws:
            self._check_gateway(gateway, known)

    def to_json(self, for_server: bool = True) -> dict[str, Any]:
        """The words of the protocol, or those of files."""
        return {
            "gws": [gateway.to_json(for_server) for gateway in self.gws],
            "vifs": [vif.to_json(for_server) for vif in self.vifs],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ASTFTopology:
        """A topology from the words of the protocol or of files. Raises ``ASTFError``."""
        topology = ASTFTopology()
        for name, add in (("vifs", topology.add_vif), ("gws", topology.add_gw)):
            entries = data.get(name) or []
            if not isinstance(entries, list):
                raise ASTFError(f"topology: {name} is not a list")
            for number, entry in enumerate(entries):
                try:
                    add(**entry)
                except TypeError as error:
                    raise ASTFError(f"topology: {name}[{number}]: {error}") from error
        return topology

    @staticmethod
    def load(path: str | Path, **tunables: Any) -> ASTFTopology:
        """A topology from a .json, .yaml or .py file (with ``get_topo()``). Raises ``STLError``."""
        file = Path(path)
        if file.suffix == ".py":
            with located_module(file) as module:
                topology = module.__dict__["get_topo"](**as_keywords(file, tunables))
                if not isinstance(topology, ASTFTopology):
                    raise STLProfileError(f"topology {file}: get_topo() must return an ASTFTopology")
                return topology
        try:
            return ASTFTopology.from_json(read_data(file))
        except ASTFError as error:
            raise STLProfileError(f"topology {file}: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write the topology to a .json, .yaml or .py file that ``load`` reads. Raises ``STLError``."""
        import yaml

        file = Path(path)
        texts = {
            ".json": lambda: json.dumps(self.to_json(False), indent=4) + "\n",
            ".yaml": lambda: str(yaml.safe_dump(self.to_json(False), sort_keys=False)),
            ".py": self.to_code,
        }
        if file.suffix not in texts:
            raise STLProfileError(f"topology {file}: give a name that ends in .json, .yaml or .py")
        try:
            file.write_text(texts[file.suffix](), encoding="utf-8")
        except OSError as error:
            raise STLProfileError(f"topology {file} cannot be written: {error.strerror or error}") from error

    def to_code(self) -> str:
        """The topology as Python code that ``load`` reads."""
        lines = ["from trex.astf.topo import ASTFTopology, TopoGW, TopoVIF", "", "", "def get_topo():"]
        for name, items in (("vifs", self.vifs), ("gws", self.gws)):
            lines += [f"    {name} = [", *(f"        {item.to_code()}," for item in items), "    ]"]
        return "\n".join([*lines, "    return ASTFTopology(vifs=vifs, gws=gws)", ""])

    def table(self) -> str:
        """The topology for people."""
        lines = ["Virtual interfaces: port, MAC, VLAN, VXLAN, IPv4, IPv6"]
        for vif in self.vifs:
            network = "" if vif.vxlan is None else str(vif.vxlan["vni"])
            parts = (vif.port_id, vif.src_mac, vif.vlan, network, vif.src_ipv4, vif.src_ipv6)
            lines.append("  " + "  ".join(str(part or "-") for part in parts))
        lines.append("Gateways for traffic: port, range, destination, MAC")
        for one in self.gws:
            lines.append(f"  {one.port_id}  {one.src_start}-{one.src_end}  {one.dst}  {one.dst_mac or '-'}")
        return "\n".join(lines)

    @staticmethod
    def _check_gateway(gateway: TopoGW, known: Mapping[str, TopoVIF]) -> None:
        if not gateway.sub_if:
            return
        vif = known.get(gateway.port_id)
        if vif is None:
            raise ASTFError(
                f"the gateway {gateway.dst} is on {gateway.port_id}, which is no virtual interface"
            )
        address = vif.src_ipv6 if gateway.needs_ipv6 else vif.src_ipv4
        if gateway.dst_mac is None and not address:
            kind = "IPv6" if gateway.needs_ipv6 else "IPv4"
            raise ASTFError(
                f"the virtual interface {vif.port_id} has no {kind} address to ask for the gateway "
                f"{gateway.dst} with"
            )


def read_data(file: Path) -> Mapping[str, Any]:
    """What a .json or .yaml file has, which must be an object. Raises ``STLProfileError``."""
    import yaml

    text = read_text(file)
    try:
        if file.suffix == ".json":
            data = json.loads(text)
        elif file.suffix in (".yaml", ".yml"):
            data = yaml.safe_load(text)
        else:
            raise STLProfileError(f"topology {file}: give a file that ends in .json, .yaml or .py")
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise STLProfileError(f"topology {file}: {error}") from error
    if not isinstance(data, dict):
        raise STLProfileError(f"topology {file}: it must be an object with vifs and gws")
    return data


def _with_port_id(fields: dict[str, Any]) -> dict[str, Any]:
    if "trex_port" not in fields:
        return fields
    others = {name: value for name, value in fields.items() if name not in ("trex_port", "sub_if")}
    return {**others, "port_id": f"{fields['trex_port']}.{fields.get('sub_if', 0)}"}


def _named(item: TopoVIF | TopoGW, for_server: bool) -> dict[str, Any]:
    return {"trex_port": item.trex_port, "sub_if": item.sub_if} if for_server else {"port_id": item.port_id}


def _place(where: str, port_id: Any) -> tuple[int, int]:
    shape = _PLACE.fullmatch(port_id) if isinstance(port_id, str) else None
    if shape is None or int(shape[2] or 0) > SUB_INTERFACES_MAX:
        raise ASTFError(
            f"{where}: port_id is {port_id!r}, give a port, or a port and an interface such as '0.1'"
        )
    return int(shape[1]), int(shape[2] or 0)


def _mac(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not _MAC.fullmatch(value):
        raise ASTFErrorBadMac(f"{where}: {name} is {value!r}, give a MAC address such as '02:00:00:00:00:01'")
    return value


def _vxlan(value: int | Mapping[str, Any]) -> dict[str, Any]:
    given = dict(value) if isinstance(value, Mapping) else {"vni": value}
    unknown = sorted(set(given) - {"vni", "remote"})
    if unknown or "vni" not in given:
        raise ASTFError(f"TopoVIF: vxlan is {value!r}, give a number, or vni and remote")
    tunnel: dict[str, Any] = {"vni": whole("TopoVIF", "vxlan", given["vni"], 0, _VNI_MAX)}
    if given.get("remote") is not None:
        tunnel["remote"] = ipv4("TopoVIF", "vxlan", given["remote"])
    return tunnel


def _is_address(value: Any) -> bool:
    try:
        ipaddress.ip_address(value if isinstance(value, str) else "")
        return True
    except ValueError:
        return False


def _is_ipv6(value: Any) -> bool:
    return _is_address(value) and ":" in value
