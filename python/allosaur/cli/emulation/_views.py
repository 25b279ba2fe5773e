"""What emulated clients are and know, as text for people and as JSON for programs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format
from allosaur.cli._answer import Answer

if TYPE_CHECKING:
    from allosaur import EMUClient, EMUClientKey, EMUNamespaceKey

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
_PAGE = 255
_COLUMNS = ("MAC", "IPv4", "gateway", "its MAC", "IPv6", "plugins")
_TEXTS = ("unit", "meaning", "MAC", "state", "sources", "namespace")
_UNSET = (None, "", "0.0.0.0", "::", "00:00:00:00:00:00")
_KINDS = {"INFO": "", "WARNING": "warning: ", "ERROR": "error: "}


def overview(client: EMUClient, keys: Sequence[EMUNamespaceKey], clients_max: int | None) -> Answer:
    """Return namespaces with their clients, of each so many at most."""
    texts, fields = [], []
    for key in keys:
        info = client.get_info_ns(key)[0]
        shown = _infos(client, key, clients_max)
        count = info["active_clients"]
        texts.append(f"{_name(key)}: {_clients(count)}; plugins {info['plug_names'] or 'none'}")
        if shown:
            texts[-1] += f"\n\n{_table(_COLUMNS, [_row(one) for one in shown])}"
        if len(shown) < count and clients_max != 0:
            texts[-1] += f"\n... and {_format.count(count - len(shown))} more"
        fields.append({**key.conv_to_dict(), **_namespace(info), "clients": shown})
    text = "\n\n".join(texts) or "There are no emulated clients: `allosaur emu load PROFILE` brings some."
    return Answer(text, {"namespaces": fields})


def details(client: EMUClient, key: EMUClientKey) -> Answer:
    """Return all that is known of a client."""
    info = {**client.get_info_clients(key)[0], **_states(client, key)}
    rows = [(name, value) for name, value in _flat(info) if value not in _UNSET]
    width = max(len(name) for name, _ in rows)
    lines = [f"Client {key.mac} of {key.ns_key}", ""]
    lines += [f"  {name:<{width}}  {value}" for name, value in rows]
    return Answer("\n".join(lines), {**key.ns_key.conv_to_dict(), "client": info})


def tables(found: Tables, title: str) -> str:
    """Return tables of counters under a title: what each counts, and how bad that is."""
    parts = []
    for name, counters in found.items():
        rows = [
            [
                one["name"],
                _format.count(one["value"]),
                one["unit"],
                f"{_KINDS.get(one['info'], '')}{one['help']}",
            ]
            for one in counters
        ]
        heading = f"{title}, {name}" if title else name
        parts.append(
            f"{heading}\n\n{_format.table(('counter', 'value', 'unit', 'meaning'), rows, texts=_TEXTS)}"
        )
    return "\n\n".join(parts)


def neighbors(client: EMUClient, keys: Sequence[EMUNamespaceKey], rows_max: int | None) -> Answer:
    """Return what namespaces know of their neighbors; those that clients need come first."""
    from allosaur import Ipv4, Ipv6, Mac

    rows, fields = [], []
    for key in keys:
        plugins = client.get_info_ns(key)[0]["plug_names"].split(", ")
        found = [(Ipv4(one["ipv4"]), one) for one in client.arp.show_cache(key)] if "arp" in plugins else []
        six = [(Ipv6(one["ipv6"]), one) for one in client.ipv6.show_cache(key)] if "ipv6" in plugins else []
        for address, one in [*found, *six]:
            at = Mac(one["mac"]).S() if one["resolve"] else None
            record = {
                "address": address.S(),
                "mac": at,
                "state": one["state"].lower(),
                "clients": one["refc"],
            }
            fields.append({**key.conv_to_dict(), **record})
            rows.append([address.S(), at or "-", record["state"], str(one["refc"]), _name(key)])
    rows.sort(key=lambda row: row[3] == "0")
    columns = ("address", "MAC", "state", "clients", "namespace")
    text = _format.table(columns, rows[:rows_max], texts=_TEXTS) if rows else "No neighbor is known."
    more = len(rows) - len(rows[:rows_max])
    return Answer(text + (f"\n... and {_format.count(more)} more" if more else ""), {"neighbors": fields})


def groups(client: EMUClient, keys: Sequence[EMUNamespaceKey]) -> Answer:
    """Return the multicast groups that namespaces are in."""
    from allosaur import Ipv4, Ipv6

    rows, fields = [], []
    for key in keys:
        plugins = client.get_info_ns(key)[0]["plug_names"].split(", ")
        four = [(Ipv4(one["g"]), one) for one in client.igmp.iter_mc(key)] if "igmp" in plugins else []
        six = [(Ipv6(one["ipv6"]), one) for one in client.ipv6.iter_mld(key)] if "ipv6" in plugins else []
        for group, one in [*four, *six]:
            kind = Ipv4 if isinstance(group, Ipv4) else Ipv6
            sources = [kind(source).S() for source in one.get("sv") or []]
            fields.append({**key.conv_to_dict(), "group": group.S(), "sources": sources})
            rows.append([group.S(), ", ".join(sources) or "any", _name(key)])
    columns = ("group", "sources", "namespace")
    text = _format.table(columns, rows, texts=_TEXTS) if rows else "No group is joined."
    return Answer(text, {"groups": fields})


def ping(address: str, stats: Mapping[str, Any]) -> Answer:
    """Return what a ping came to."""
    sent, in_order = stats.get("requestsSent", 0), stats.get("repliesInOrder", 0)
    late = stats.get("repliesOutOfOrder", 0)
    text = f"{address}: {sent} sent, {in_order + late} answered"
    text += f", {late} of them out of order" if late else ""
    if in_order + late:
        times = "/".join(str(stats.get(f"{name}Latency", 0)) for name in ("min", "avg", "max"))
        text += f"; round trip min/avg/max {times} µs"
    unreachable = stats.get("dstUnreachable", 0)
    text += f"; {unreachable} unreachable" if unreachable else ""
    fields = {"address": address, "sent": sent, "received": in_order + late, "counters": dict(stats)}
    return Answer(f"{text}.", fields)


def _infos(client: EMUClient, key: EMUNamespaceKey, limit: int | None) -> list[dict[str, Any]]:
    """Return what is known of the first clients of a namespace."""
    if limit == 0:
        return []
    pages = client.yield_clients(key, None if limit is None else min(limit, _PAGE))
    keys = list(itertools.islice(itertools.chain.from_iterable(pages), limit))
    return client.get_info_clients(keys)


def _row(info: Mapping[str, Any]) -> list[str]:
    gateway = (info.get("dgw") or {}).get("rmac") if (info.get("dgw") or {}).get("resolve") else None
    plugins = _split(info.get("plug_names") or "")
    known = (info.get(name) for name in _SIX if "ipv6" in plugins or name != "ipv6_local")
    six = next((address for address in known if address not in _UNSET), None)
    forced = info.get("ipv4_force_mac")
    values = (info["mac"], info.get("ipv4"), info.get("ipv4_dg"), gateway or forced, six, ", ".join(plugins))
    return ["-" if value in _UNSET else str(value) for value in values]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of texts without the columns that say nothing."""
    kept = [number for number in range(len(columns)) if any(row[number] != "-" for row in rows)]
    header = [columns[number] for number in kept]
    return _format.table(header, [[row[number] for number in kept] for row in rows], texts=header)


_SIX = ("dhcp_ipv6", "ipv6", "ipv6_slaac", "ipv6_local")
"""The IPv6 addresses of a client, the one that it sends from first."""


def _states(client: EMUClient, key: EMUClientKey) -> dict[str, Any]:
    """Return how far the plugins of a client are that have a state of their own."""
    plugins = client.get_info_clients(key)[0]["plug_names"].split(", ")
    found: dict[str, Any] = {}
    if "dot1x" in plugins:
        found["dot1x"] = client.dot1x.get_clients_info(key)[0]
    if "ppp" in plugins:
        found["ppp"] = {
            "session": client.ppp.get_session(key),
            "ipv4": client.ppp.get_ipv4(key),
            "server_mac": client.ppp.get_server_mac(key),
        }
    return found


def _flat(info: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in info.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _namespace(info: Mapping[str, Any]) -> dict[str, Any]:
    return {"active_clients": info["active_clients"], "plugins": _split(info["plug_names"])}


def _split(names: str) -> list[str]:
    return names.split(", ") if names else []


def _name(key: EMUNamespaceKey) -> str:
    text = str(key)
    return f"{text[0].upper()}{text[1:]}"


def _clients(count: int) -> str:
    return f"{_format.count(count)} client{'' if count == 1 else 's'}"
