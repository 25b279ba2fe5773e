"""The views of the machine: cores, packet memory, drivers; what ports are; what happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allosaur.cli.top import _numbers
from allosaur.cli.top._snapshot import Core, Pool, Port, Snapshot
from allosaur.cli.top._state import Page, State
from allosaur.cli.top._table import Body, Column, noted, said, table


def utilization(state: State, snapshot: Snapshot, width: int) -> Body:
    """Return the page of utilization that is chosen."""
    if state.page is Page.POOLS:
        return _pools(snapshot, width)
    if state.page is Page.DRIVERS:
        return _drivers(state, width)
    head, *rows = table(_core_columns(width), list(enumerate(snapshot.cores)), width)
    return Body("Data cores, use in percent", [head], rows or said("The server does not tell of its cores."))


def _core_columns(width: int) -> list[Column[tuple[int, Core]]]:
    def before(place: int) -> Column[tuple[int, Core]]:
        return Column(
            f"-{place}",
            4,
            lambda one: f"{one[1].history[place]:.0f}" if place < len(one[1].history) else "",
            rank=1,
        )

    return [
        Column("thread", 6, lambda one: str(one[0])),
        Column("ports", 9, lambda one: "/".join(map(str, one[1].ports)) or "-", is_text=True),
        Column("now", 4, lambda one: f"{one[1].history[0]:.0f}" if one[1].history else "-"),
        Column("", 20, lambda one: _numbers.bars(one[1].history[::-1], 20, top=100.0)),
        *(before(place) for place in range(1, 11)),
    ]


def _pools(snapshot: Snapshot, width: int) -> Body:
    columns: list[Column[Pool]] = [
        Column("socket", 14, lambda one: one.socket, is_text=True),
        Column("size", 6, lambda one: one.size),
        Column("total", 10, lambda one: _numbers.count(one.total)),
        Column("used", 10, lambda one: _numbers.count(one.used)),
        Column("%", 6, lambda one: _numbers.percent(100 * one.used / one.total if one.total else 0)),
    ]
    head, *rows = table(columns, snapshot.pools, width)
    return Body("Packet memory", [head], rows or said("The server has no pools of packet memory."))


def _drivers(state: State, width: int) -> Body:
    ports = state.shown_ports
    names = dict.fromkeys(name for port in ports for name, value in port.driver_counters.items() if value)

    def of_port(port: Port) -> Column[str]:
        return Column(
            f"port {port.number}", 14, lambda name: _numbers.count(port.driver_counters.get(name, 0), 14)
        )

    columns: list[Column[str]] = [
        Column("counter", 34, lambda name: name, is_text=True),
        *(of_port(port) for port in ports),
    ]
    head, *rows = table(columns, list(names), width)
    return Body("Counters of the drivers that are not zero", [head], rows or said("All are zero."))


ATTRIBUTES = (
    *(("driver", "driver"), ("description", "description"), ("link status", "link")),
    *(("link speed", "speed"), ("port status", "status"), ("promiscuous", "prom"), ("multicast", "mult")),
    *(("flow ctrl", "fc"), ("vxlan fs", "vxlan_fs"), ("--", ""), ("layer mode", "layer_mode")),
    *(("src IPv4", "src_ipv4"), ("IPv6", "ipv6"), ("src MAC", "src_mac"), ("---", "")),
    *(("Destination", "dest"), ("ARP Resolution", "arp"), ("----", ""), ("VLAN", "vlan"), ("-----", "")),
    *(("PCI Address", "pci_addr"), ("NUMA Node", "numa"), ("RX Filter Mode", "rx_filter_mode")),
    *(("RX Queueing", "rx_queue"), ("Grat ARP", "grat_arp")),
)
"""What ports are, in the words of TRex's table, with its lines between."""


def attribute(attributes: Mapping[str, Any], name: str) -> str:
    """Return an attribute as people read it; nothing for a line between."""
    if not name:
        return ""
    value = attributes.get(name, "N/A")
    return f"{value:g} Gb/s" if isinstance(value, (int, float)) and name == "speed" else str(value)


def info(state: State, width: int) -> Body:
    """Return what ports are; left and right move along the ports."""
    ports = state.shown_ports[state.chosen :]

    def of_port(port: Port) -> Column[tuple[str, str]]:
        return Column(
            f"port {port.number}",
            18,
            lambda one: attribute(port.attributes, one[1]) if port.attributes else "",
            is_text=True,
        )

    columns: list[Column[tuple[str, str]]] = [
        Column("", 16, lambda one: one[0], is_text=True),
        *(of_port(port) for port in ports),
    ]
    head, *rows = table(columns, [one for one in ATTRIBUTES if one[1]], width)
    return Body("Ports", [head], rows, "left, right: others")


def events(snapshot: Snapshot) -> Body:
    """Return what the server told, the newest first."""
    rows = [noted(note) for note in reversed(snapshot.notes)]
    return Body("Events, the newest first", rows=rows or said("Nothing has happened since this began."))
