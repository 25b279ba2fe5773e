"""TDL: clients that send telemetry in Cisco's language for it."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import ClientPlugin, Init


class TDLPlugin(ClientPlugin):
    """``client.tdl``."""

    plugin_name = "tdl"
    CLIENT_COUNTERS = "tdl_c_cnt"
    INIT_JSON_NS: ClassVar[Init] = None
    INIT_JSON_CLIENT: ClassVar[Init] = {"tdl": {"dst": "16.0.0.254:8080", "rate_pps": 1}}
