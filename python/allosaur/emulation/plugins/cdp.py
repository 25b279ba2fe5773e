"""CDP: clients that say who they are, in Cisco's way."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import ClientPlugin, Init


class CDPPlugin(ClientPlugin):
    """``client.cdp``."""

    plugin_name = "CDP"
    CLIENT_COUNTERS = "cdp_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"cdp": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"cdp": {"timer": 60, "ver": 2}}
