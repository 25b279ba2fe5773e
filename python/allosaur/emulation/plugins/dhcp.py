"""DHCPv4: clients that lease their address."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import ClientPlugin, Init


class DHCPPlugin(ClientPlugin):
    """``client.dhcp``."""

    plugin_name = "DHCP"
    CLIENT_COUNTERS = "dhcp_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"dhcp": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"dhcp": {"timerd": 5, "timero": 10}}
