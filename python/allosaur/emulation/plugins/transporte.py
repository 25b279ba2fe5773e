"""An example of a plugin over TCP: clients that send so many bytes, and read them back."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import Init, NamespacePlugin


class TRANSPORTEPlugin(NamespacePlugin):
    """``client.transporte``."""

    plugin_name = "transe"
    NS_COUNTERS = "transe_ns_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"transe": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"transe": {"addr": "48.0.0.1:9001", "size": 10_000, "loops": 1}}
