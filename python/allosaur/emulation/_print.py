"""Namespaces and clients as text: tables for people, JSON and YAML for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_NS = {
    "vport": "Port",
    "tci": "Vlan tags",
    "tpid": "Tpids",
    "plug_names": "Plugins",
    "active_clients": "#Clients",
}
_CLIENT = {"mac": "MAC", "ipv4": "IPv4", "ipv4_dg": "DG-IPv4", "ipv4_mtu": "MTU"}
_IPV6 = {
    "ipv6": "IPv6",
    "dg_ipv6": "DG-IPv6",
    "dhcp_ipv6": "DHCPv6",
    "ipv6_local": "IPv6-Local",
    "ipv6_slaac": "IPv6-Slaac",
}
_FORCED = {
    "plug_names": "Plugins",
    "ipv4_force_dg": "IPv4 Force DG",
    "ipv4_force_mac": "IPv4 Force MAC",
    "ipv6_force_dg": "IPv6 Force DG",
    "ipv6_force_mac": "IPv6 Force MAC",
}
_GATEWAY = {"resolve": "Resolve", "rmac": "Resolved-Mac"}
_ROUTER = {"mtu": "MTU", "dgmac": "DG-MAC", "prefix": "Prefix", "prefix_len": "Prefix Length"}
_EMPTY = (None, "", 0, False, "0.0.0.0", "::", "00:00:00:00:00:00")

Row = dict[str, Any]


def dump(data: Any, to_json: bool = False) -> None:
    """Print data as JSON, or as YAML."""
    print(dumped(data, to_json))


def dumped(data: Any, to_json: bool) -> str:
    """Data as JSON, or as YAML."""
    if to_json:
        return json.dumps(data, indent=4)
    import yaml

    text: str = yaml.safe_dump(data, allow_unicode=True, default_flow_style=False, indent=4)
    return text


def namespace(info: Row, title: str = "Namespace information") -> str:
    """A namespace as a table."""
    return table(title, [_NS], [{name: _shown(info.get(name)) for name in _NS}], keep=True)


def clients(
    infos: Sequence[Row], ipv6: bool = False, dg4: bool = False, dg6: bool = False, router: bool = False
) -> str:
    """Clients as a table, after those of what is asked for: gateways, and IPv6 routers."""
    rows = sorted(infos, key=lambda info: str(info["mac"]))
    texts = []
    for wanted, key, columns, title in (
        (dg4, "dgw", _GATEWAY, "DG-4 Table"),
        (dg6, "ipv6_dgw", _GATEWAY, "DG-6 Table"),
        (router, "ipv6_router", _ROUTER, "IPv6 Router Table"),
    ):
        if wanted:
            inner = [{"mac": info["mac"], **info[key]} for info in rows if info.get(key)]
            texts.append(table(title, [{"mac": "MAC"}, columns], inner) if inner else f"{title} is empty")
    shown = [_CLIENT, _IPV6, _FORCED] if ipv6 else [_CLIENT, _FORCED]
    texts.append(table("Clients information", shown, rows) if rows else "There is no client")
    return "\n\n".join(texts)


def table(title: str, columns: Sequence[dict[str, str]], rows: Sequence[Row], keep: bool = False) -> str:
    """Rows as a table; a column that is empty in all is left out, unless it shall be kept."""
    heads = {
        name: head
        for group in columns
        for name, head in group.items()
        if keep or any(row.get(name) not in _EMPTY for row in rows)
    }
    lines = [list(heads.values()), *([str(_shown(row.get(name))) for name in heads] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    text = [
        " | ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    text.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join([title, *text])


def _shown(value: Any) -> Any:
    return "-" if value in (None, "") else value
