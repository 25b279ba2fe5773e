"""LLDP: clients that say who they are."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import ClientPlugin, Init


class LLDPPlugin(ClientPlugin):
    """``client.lldp``."""

    plugin_name = "LLDP"
    CLIENT_COUNTERS = "lldp_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"lldp": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"lldp": {"timer": 30}}
