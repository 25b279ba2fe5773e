"""The plugins of the client: one list, by the name that each has there."""

from __future__ import annotations

from typing import get_type_hints

from .._plugin import EMUPluginBase
from .arp import ARPPlugin
from .counting import (
    APPSIMPlugin,
    CDPPlugin,
    DHCPPlugin,
    DHCPSRVPlugin,
    DHCPV6Plugin,
    LLDPPlugin,
    TDLPlugin,
    TRANSPORTEPlugin,
    TRANSPORTPlugin,
)
from .dns import DNSPlugin
from .dot1x import DOT1XPlugin
from .icmp import ICMPPlugin
from .igmp import IGMPPlugin
from .ipfix import IPFIXPlugin
from .ipv6 import IPV6Plugin
from .mdns import MDNSPlugin
from .ppp import PPPPlugin


class Plugins:
    """The plugins, each an attribute of the client."""

    arp: ARPPlugin
    icmp: ICMPPlugin
    igmp: IGMPPlugin
    ipv6: IPV6Plugin
    dhcp: DHCPPlugin
    dhcpsrv: DHCPSRVPlugin
    dhcpv6: DHCPV6Plugin
    dns: DNSPlugin
    mdns: MDNSPlugin
    dot1x: DOT1XPlugin
    lldp: LLDPPlugin
    cdp: CDPPlugin
    transport: TRANSPORTPlugin
    transporte: TRANSPORTEPlugin
    ipfix: IPFIXPlugin
    tdl: TDLPlugin
    appsim: APPSIMPlugin
    ppp: PPPPlugin


PLUGINS: dict[str, type[EMUPluginBase]] = get_type_hints(Plugins)
