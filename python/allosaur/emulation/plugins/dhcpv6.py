"""DHCPv6: clients that lease their address."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import ClientPlugin, Init


class DHCPV6Plugin(ClientPlugin):
    """``client.dhcpv6``."""

    plugin_name = "DHCPV6"
    CLIENT_COUNTERS = "dhcpv6_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"dhcpv6": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"dhcpv6": {"timerd": 5, "timero": 10}}
