"""Replies of the RPC: namespaces and clients.

Written from the command table in `crates/emulation`: change it there.
"""

from __future__ import annotations

from typing import Any, TypedDict


class ApiHandle(TypedDict):
    """Reply of `api_sync_v2`."""

    api_h: str
    """What other commands want as `api_h`."""


class Version(TypedDict):
    """Reply of `get_version`."""

    version: str
    """The version."""
    build_date: str
    """`unknown`."""
    build_time: str
    """`unknown`."""
    built_by: str
    """`allosaur`."""
    mode: str
    """`emulation`."""


class Time(TypedDict):
    """Reply of `ping`."""

    ts: int
    """The server's time, in hundredths of a second."""


Done = bool
"""`true`: it is done."""


class NamespaceEntry(TypedDict):
    """A namespace of `ctx_iter`. Where there is no outer tag, there is no inner one."""

    vport: int
    """The port, by its number."""
    tci: list[int]
    """The numbers of its VLANs, the outer first; 0 is no tag."""
    tpid: list[int]
    """The types of the tags."""
    plugs: None
    """`null`."""


class PageOfNamespaceEntry(TypedDict):
    """A page of a table."""

    empty: bool
    """Whether the table has nothing."""
    stopped: bool
    """Whether there was nothing left to go on with."""
    data: list[NamespaceEntry] | None
    """What is on the page, in the order of the table."""


class NamespaceInfo(TypedDict):
    """What `ctx_get_info` says of a namespace."""

    vport: int
    """The port, by its number."""
    tci: list[int]
    """The numbers of its VLANs, the outer first; 0 is no tag."""
    tpid: list[int]
    """The types of the tags."""
    active_clients: int
    """How many clients it has."""
    plug_names: list[str]
    """Its plugins."""


class Defaults(TypedDict):
    """The plugins of namespaces or clients that are added without any."""

    def_plugs: dict[str, Any] | None
    """The plugins by their names, with the init JSON of each."""


class CounterMeaning(TypedDict):
    """What a counter means."""

    name: str
    """Its name."""
    help: str
    """What it counts."""
    unit: str
    """Of what, such as `pkts`, `bytes`, `ops`."""
    zero: bool
    """Whether it is reported when it is zero."""
    info: int
    """How bad it is when it counts: 18 is nothing wrong, 19 worth a look, 20 an error."""


class CounterTable(TypedDict):
    """A table of counters."""

    name: str
    """Its name."""
    meta: list[CounterMeaning]
    """Its counters."""


CounterReport = bool | dict[str, CounterTable] | dict[str, dict[str, int]]
"""What of counters was wanted."""


class GatewayInfo(TypedDict):
    """What a client knows of a gateway."""

    resolve: bool
    """Whether its MAC address is known."""
    rmac: list[int]
    """Its MAC address."""


class RouterInfo(TypedDict):
    """What clients know of a router."""

    mtu: int
    """The longest packet of the link, in bytes."""
    dgmac: list[int]
    """Its MAC address."""
    prefix: list[int]
    """The prefix of addresses."""
    prefix_len: int
    """The prefix's length, in bits."""
    ipv6: list[int]
    """Its address."""


class ClientInfo(TypedDict):
    """What `ctx_client_get_info` says of a client."""

    mac: list[int]
    """Its MAC address."""
    ipv4: list[int]
    """Its IPv4 address."""
    ipv4_dg: list[int]
    """Its gateway for IPv4."""
    ipv4_mtu: int
    """The longest IPv4 packet that it sends, in bytes."""
    ipv6_local: list[int]
    """Its link-local IPv6 address."""
    ipv6_slaac: list[int]
    """The address that it made of the router's prefix."""
    ipv6: list[int]
    """Its static IPv6 address."""
    dg_ipv6: list[int]
    """Its gateway for IPv6."""
    dhcp_ipv6: list[int]
    """Its address by DHCPv6."""
    ipv4_force_dg: bool
    """Whether its gateway for IPv4 has the MAC address `ipv4_force_mac`, and is not asked for
    it."""
    ipv4_force_mac: list[int]
    """That MAC address."""
    ipv6_force_dg: bool
    """The same for IPv6."""
    ipv6_force_mac: list[int]
    """The same for IPv6."""
    dgw: GatewayInfo | None
    """What it knows of its gateway for IPv4, where it asks for it."""
    ipv6_dgw: GatewayInfo | None
    """The same for IPv6."""
    ipv6_router: RouterInfo | None
    """What it knows of the router of IPv6, where it has the plugin `ipv6`."""
    plug_names: list[str]
    """Its plugins."""


class PageOfMac(TypedDict):
    """A page of a table."""

    empty: bool
    """Whether the table has nothing."""
    stopped: bool
    """Whether there was nothing left to go on with."""
    data: list[list[int]] | None
    """What is on the page, in the order of the table."""
