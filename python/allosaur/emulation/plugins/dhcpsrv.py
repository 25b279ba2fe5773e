"""DHCPv4: clients that are servers, with pools of addresses."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import ClientPlugin, Init


class DHCPSRVPlugin(ClientPlugin):
    """``client.dhcpsrv``."""

    plugin_name = "DHCPSRV"
    CLIENT_COUNTERS = "dhcpsrv_c_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"dhcpsrv": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {
        "dhcpsrv": {"pools": [{"min": "16.0.0.10", "max": "16.0.0.99", "prefix": 24}]}
    }
