"""The plugins of the client: one list, by the name that each has there."""

from __future__ import annotations

from .._plugin import EMUPluginBase
from .appsim import APPSIMPlugin
from .arp import ARPPlugin
from .cdp import CDPPlugin
from .dhcp import DHCPPlugin
from .dhcpsrv import DHCPSRVPlugin
from .dhcpv6 import DHCPV6Plugin
from .dns import DNSPlugin
from .dot1x import DOT1XPlugin
from .icmp import ICMPPlugin
from .igmp import IGMPPlugin
from .ipfix import IPFIXPlugin
from .ipv6 import IPV6Plugin
from .lldp import LLDPPlugin
from .mdns import MDNSPlugin
from .ppp import PPPPlugin
from .tdl import TDLPlugin
from .transport import TRANSPORTPlugin
from .transporte import TRANSPORTEPlugin

PLUGINS: dict[str, type[EMUPluginBase]] = {
    "arp": ARPPlugin,
    "icmp": ICMPPlugin,
    "igmp": IGMPPlugin,
    "ipv6": IPV6Plugin,
    "dhcp": DHCPPlugin,
    "dhcpsrv": DHCPSRVPlugin,
    "dhcpv6": DHCPV6Plugin,
    "dns": DNSPlugin,
    "mdns": MDNSPlugin,
    "dot1x": DOT1XPlugin,
    "lldp": LLDPPlugin,
    "cdp": CDPPlugin,
    "transport": TRANSPORTPlugin,
    "transporte": TRANSPORTEPlugin,
    "ipfix": IPFIXPlugin,
    "tdl": TDLPlugin,
    "appsim": APPSIMPlugin,
    "ppp": PPPPlugin,
}
