"""The plugins that only count: their names, their counters, and examples of their settings."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import ClientPlugin, Init, NamespacePlugin


class DHCPPlugin(ClientPlugin):
    """``client.dhcp``: DHCPv4: clients that lease their address."""

    plugin_name = "DHCP"
    CLIENT_COUNTERS = "dhcp_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"dhcp": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"dhcp": {"timerd": 5, "timero": 10}}


class DHCPSRVPlugin(ClientPlugin):
    """``client.dhcpsrv``: DHCPv4: clients that are servers, with pools of addresses."""

    plugin_name = "DHCPSRV"
    CLIENT_COUNTERS = "dhcpsrv_c_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"dhcpsrv": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {
        "dhcpsrv": {"pools": [{"min": "16.0.0.10", "max": "16.0.0.99", "prefix": 24}]}
    }


class DHCPV6Plugin(ClientPlugin):
    """``client.dhcpv6``: DHCPv6: clients that lease their address."""

    plugin_name = "DHCPV6"
    CLIENT_COUNTERS = "dhcpv6_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"dhcpv6": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"dhcpv6": {"timerd": 5, "timero": 10}}


class LLDPPlugin(ClientPlugin):
    """``client.lldp``: LLDP: clients that say who they are."""

    plugin_name = "LLDP"
    CLIENT_COUNTERS = "lldp_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"lldp": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"lldp": {"timer": 30}}


class CDPPlugin(ClientPlugin):
    """``client.cdp``: CDP: clients that say who they are, in Cisco's way."""

    plugin_name = "CDP"
    CLIENT_COUNTERS = "cdp_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"cdp": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"cdp": {"timer": 60, "ver": 2}}


class TRANSPORTPlugin(ClientPlugin):
    """``client.transport``: TCP and UDP for the plugins of a client."""

    plugin_name = "TRANSPORT"
    CLIENT_COUNTERS = "transport_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"transport": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"transport": {"mss": 1460, "initwnd": 10}}


class TRANSPORTEPlugin(NamespacePlugin):
    """``client.transporte``: an example of a plugin over TCP: clients that send bytes and read them back."""

    plugin_name = "transe"
    NS_COUNTERS = "transe_ns_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"transe": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"transe": {"addr": "48.0.0.1:9001", "size": 10_000, "loops": 1}}


class TDLPlugin(ClientPlugin):
    """``client.tdl``: TDL: clients that send telemetry in Cisco's language for it."""

    plugin_name = "tdl"
    CLIENT_COUNTERS = "tdl_c_cnt"
    INIT_JSON_NS: ClassVar[Init] = None
    INIT_JSON_CLIENT: ClassVar[Init] = {"tdl": {"dst": "16.0.0.254:8080", "rate_pps": 1}}


class APPSIMPlugin(ClientPlugin):
    """``client.appsim``: applications: clients that run the programs of stateful profiles."""

    plugin_name = "APPSIM"
    CLIENT_COUNTERS = "appsim_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"appsim": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"appsim": {"data": {}}}
