"""TCP and UDP for the plugins of a client."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import ClientPlugin, Init


class TRANSPORTPlugin(ClientPlugin):
    """``client.transport``."""

    plugin_name = "TRANSPORT"
    CLIENT_COUNTERS = "transport_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"transport": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"transport": {"mss": 1460, "initwnd": 10}}
