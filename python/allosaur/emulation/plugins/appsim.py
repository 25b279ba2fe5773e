"""Applications: clients that run the programs of stateful profiles."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import ClientPlugin, Init


class APPSIMPlugin(ClientPlugin):
    """``client.appsim``."""

    plugin_name = "APPSIM"
    CLIENT_COUNTERS = "appsim_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"appsim": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"appsim": {"data": {}}}
