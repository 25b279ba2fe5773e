"""Configurations of BIRD, put together: TRex's ``BirdCFGCreator``."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from .._errors import STLArgumentError, STLError

#: What BIRD begins with: no routes, and interfaces that it looks at every second.
DEFAULT_CFG = """
router id 100.100.100.100;
protocol device {
    scan time 1;
}
"""
_PROTOCOL = re.compile(r"^[ \t]*protocol\s+(\w+)(?:\s+(?!\{)(\S+?))?\s*\{", re.MULTILINE)
_CHANNEL = "    ipv4 {\n        import all;\n        export all;\n    };\n"


class Route:
    """A static route: where to, and by which next hop."""

    def __init__(self, dst_cidr: str, next_hop: str) -> None:
        if not (self.is_ipv4_cidr(dst_cidr) or self.is_ipv6_cidr(dst_cidr)):
            raise ValueError(
                f"'dst_cidr' is '{dst_cidr}': give a network with a prefix such as 42.42.42.0/24"
            )
        self.dst_cidr = dst_cidr
        self.next_hop = next_hop

    @staticmethod
    def is_ipv4_cidr(ip: str) -> bool:
        """Whether this is a network of IPv4."""
        return _is_network(ip, ipaddress.IPv4Interface)

    @staticmethod
    def is_ipv6_cidr(ip: str) -> bool:
        """Whether this is a network of IPv6."""
        return _is_network(ip, ipaddress.IPv6Interface)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Route):
            return NotImplemented
        return (self.dst_cidr, self._hop()) == (other.dst_cidr, other._hop())

    def __hash__(self) -> int:
        return hash((self.dst_cidr, self._hop()))

    def __repr__(self) -> str:
        return f"route {self.dst_cidr} via {self._hop()};"

    def _hop(self) -> str:
        return self.next_hop.strip().removesuffix(";").rstrip()


class ExtRoute(Route):
    """A static route with more behind its next hop, such as ``198.51.100.3 { rip_metric = 3; };``."""

    def __init__(self, dst_cidr: str, next_hop: str) -> None:
        super().__init__(dst_cidr, next_hop.strip().removeprefix("via ").lstrip())


@dataclass
class _Protocol:
    data: str
    #: It is in the text that the configuration began with.
    is_given: bool


class BirdCFGCreator:
    """A configuration that protocols and static routes are added to; ``build_config`` gives its text."""

    #: The name of the static protocol that has the routes.
    stat_name = "bird_cfg_routes"

    def __init__(self, cfg_string: str = DEFAULT_CFG) -> None:
        self.cfg = cfg_string
        self._routes: dict[Route, None] = {}
        self._protocols: dict[tuple[str, str], _Protocol] = {}
        for kind, name in _PROTOCOL.findall(cfg_string):
            self._protocols[kind, name or kind] = _Protocol("", is_given=True)

    def add_protocol(self, protocol: str, name: str, data: str, from_conf: bool = False) -> None:
        """Add a protocol such as ``bgp`` under a name of its own; ``data`` is what stands in its braces."""
        if (protocol, name) in self._protocols or (protocol, name) == ("static", self.stat_name):
            raise STLError(f"protocol {protocol} '{name}' is there already: give it another name")
        self._protocols[protocol, name] = _Protocol(data, is_given=from_conf)

    def remove_protocol(self, protocol: str, name: str) -> None:
        """Remove a protocol that was added."""
        found = self._protocols.get((protocol, name))
        if found is None:
            raise STLError(f"there is no protocol {protocol} '{name}': add_protocol adds one")
        if found.is_given:
            raise STLError(f"protocol {protocol} '{name}' is in the text of cfg_string: change it there")
        del self._protocols[protocol, name]

    def add_route(self, dst_cidr: str, next_hop: str) -> None:
        """Add a static route by a next hop: an address, or an interface in double quotes."""
        self._routes[Route(dst_cidr, next_hop)] = None

    def add_extended_route(self, dst_cidr: str, next_hop: str) -> None:
        """Add a static route with attributes behind its next hop."""
        self._routes[ExtRoute(dst_cidr, next_hop)] = None

    def add_many_routes(self, start_ip: str, total_routes: int, next_hop: str, jump: int = 1) -> None:
        """Add so many routes to hosts (/32): of ``start_ip`` and of addresses each ``jump`` further."""
        first = int(ipaddress.IPv4Address(start_ip))
        last = first + (int(total_routes) - 1) * int(jump)
        if jump < 1 or not 0 <= last < 2**32:
            raise STLArgumentError(
                "total_routes", total_routes, f"as many as there are addresses from {start_ip} on"
            )
        for number in range(first, last + 1, int(jump)):
            self.add_route(f"{ipaddress.IPv4Address(number)}/32", next_hop)

    def remove_route(self, dst_cidr: str, next_hop: str | None = None) -> None:
        """Remove the routes to a network: by one next hop, or all."""
        wanted = None if next_hop is None else Route(dst_cidr, next_hop)
        found = [
            route
            for route in self._routes
            if (route == wanted if wanted is not None else route.dst_cidr == dst_cidr)
        ]
        if not found:
            raise STLError(f"there is no route to {dst_cidr}: add_route adds one")
        for route in found:
            del self._routes[route]

    def build_config(self) -> str:
        """The text of the configuration."""
        added = (
            f"\nprotocol {kind} {name} {_braced(protocol.data)}\n"
            for (kind, name), protocol in self._protocols.items()
            if not protocol.is_given
        )
        routes = "".join(f"    {route}\n" for route in self._routes)
        if ("static", self.stat_name) in self._protocols:
            text = _with_routes(self.cfg, self.stat_name, routes)
            return text + "".join(added)
        static = f"\nprotocol static {self.stat_name} {{\n{_CHANNEL}{routes}}}\n"
        return self.cfg + "".join(added) + static

    def add_simple_rip(self) -> None:
        """Add RIP on all interfaces."""
        self.add_protocol("rip", "rip1", f'{_CHANNEL}    interface "*";\n')

    def add_simple_bgp(self) -> None:
        """Add BGP of AS 65000 from 1.1.1.3 to 1.1.1.1 and from 1.1.2.3 to 1.1.2.1."""
        for number in (1, 2):
            peers = f"    local 1.1.{number}.3 as 65000;\n    neighbor 1.1.{number}.1 as 65000;\n"
            self.add_protocol("bgp", f"my_bgp{number}", peers + _CHANNEL)

    def add_simple_ospf(self) -> None:
        """Add OSPF on all interfaces, in area 0."""
        area = '    area 0 {\n        interface "*" {\n            type pointopoint;\n        };\n    };\n'
        self.add_protocol("ospf", "ospf1", _CHANNEL + area)

    def __repr__(self) -> str:
        names = ", ".join(f"{kind} {name}" for kind, name in self._protocols)
        return f"<{len(self._routes)} routes; protocols: {names}>"


def _is_network(text: str, kind: type[ipaddress.IPv4Interface | ipaddress.IPv6Interface]) -> bool:
    if "/" not in text:
        return False
    try:
        kind(text)
    except ValueError:
        return False
    return True


def _braced(data: str) -> str:
    bare = data.strip()
    return bare if bare.startswith("{") and bare.endswith("}") else f"{{\n{data.rstrip()}\n}}"


def _with_routes(text: str, name: str, routes: str) -> str:
    """A configuration with routes at the end of its static protocol of that name."""
    begin = re.search(rf"protocol\s+static\s+{re.escape(name)}\s*\{{", text)
    depth = 0
    for at in range(begin.end() - 1 if begin else len(text), len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return f"{text[:at]}{routes}{text[at:]}"
    raise STLError(f"protocol static '{name}' of cfg_string has no end: close its brace")
