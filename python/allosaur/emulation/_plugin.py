"""What plugins of the client have in common: counters, clean-up before a namespace goes, pings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .._errors import STLError
from . import _check
from ._counters import DataCounter
from ._profile import EMUClientKey, EMUNamespaceKey
from ._requests import Requests
from ._values import EMUType

Init = dict[str, Any] | None
"""The settings of a plugin, under its name."""


class EMUPluginBase:
    """A plugin of the client, by the name that it has there: ``client.arp``."""

    plugin_name: ClassVar[str]
    NS_COUNTERS: ClassVar[str | None] = None
    """The method of the server that counts for a namespace."""
    CLIENT_COUNTERS: ClassVar[str | None] = None
    """The method of the server that counts for a client."""
    INIT_JSON_NS: ClassVar[Init] = None
    """An example of the plugin's settings in a namespace; None where it takes none."""
    INIT_JSON_CLIENT: ClassVar[Init] = None
    """An example of the plugin's settings in a client; None where it takes none."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        ns, client = self.NS_COUNTERS, self.CLIENT_COUNTERS
        self.ns_data_cnt = DataCounter(requests, ns) if ns is not None else None
        self.client_data_cnt = DataCounter(requests, client) if client is not None else None

    def tear_down_ns(self, ns_key: EMUNamespaceKey) -> None:
        """Undo what keeps a namespace from being removed."""

    def _of_ns(self, ns_key: EMUNamespaceKey) -> DataCounter:
        _check.kind("ns_key", ns_key, EMUNamespaceKey)
        if self.ns_data_cnt is None:
            raise STLError(f"{self.plugin_name} counts by client: give the key of a client")
        self.ns_data_cnt.set_add_data(ns_key=ns_key)
        return self.ns_data_cnt

    def _of_client(self, c_key: EMUClientKey) -> DataCounter:
        _check.kind("c_key", c_key, EMUClientKey)
        if self.client_data_cnt is None:
            raise STLError(f"{self.plugin_name} counts by namespace: give the key of a namespace")
        self.client_data_cnt.set_add_data(c_key=c_key)
        return self.client_data_cnt

    def _to_ns(self, method: str, ns_key: EMUNamespaceKey, **params: Any) -> Any:
        _check.kind("ns_key", ns_key, EMUNamespaceKey)
        return self._requests.to_ns(method, ns_key, **params)

    def _to_client(self, method: str, c_key: EMUClientKey, **params: Any) -> Any:
        _check.kind("c_key", c_key, EMUClientKey)
        return self._requests.to_client(method, c_key, **params)

    def _of_ns_all(self, method: str, ns_key: EMUNamespaceKey, count: int | None = None) -> list[Any]:
        _check.kind("ns_key", ns_key, EMUNamespaceKey)
        return self._requests.items(method, ns_key.conv_to_dict(add_tunnel_key=True), count)

    def _of_client_all(self, method: str, c_key: EMUClientKey) -> list[Any]:
        _check.kind("c_key", c_key, EMUClientKey)
        return self._requests.items(method, c_key.conv_to_dict(add_ns=True, to_bytes=True))


class NamespacePlugin(EMUPluginBase):
    """A plugin that counts for a namespace as a whole."""

    def get_counters(
        self,
        ns_key: EMUNamespaceKey,
        cnt_filter: Sequence[str] | None = None,
        zero: bool = True,
        verbose: bool = True,
    ) -> dict[str, Any]:
        """The counters of a namespace by table, with what they mean; without ``verbose`` numbers only.

        ``cnt_filter`` takes severities ("INFO", "WARNING", "ERROR"), ``zero`` those that are zero, too.
        """
        return self._of_ns(ns_key).get_counters(None, cnt_filter, zero, verbose)

    def clear_counters(self, ns_key: EMUNamespaceKey) -> Any:
        """Let the counters of a namespace begin at zero."""
        return self._of_ns(ns_key).clear_counters()


class ClientPlugin(EMUPluginBase):
    """A plugin that counts for each client."""

    def get_counters(
        self,
        c_key: EMUClientKey,
        cnt_filter: Sequence[str] | None = None,
        zero: bool = True,
        verbose: bool = True,
    ) -> dict[str, Any]:
        """The counters of a client by table, with what they mean; without ``verbose`` numbers only.

        ``cnt_filter`` takes severities ("INFO", "WARNING", "ERROR"), ``zero`` those that are zero, too.
        """
        return self._of_client(c_key).get_counters(None, cnt_filter, zero, verbose)

    def clear_counters(self, c_key: EMUClientKey) -> Any:
        """Let the counters of a client begin at zero."""
        return self._of_client(c_key).clear_counters()


class BothPlugin(EMUPluginBase):
    """A plugin that counts for each client, and for the namespace."""

    def get_client_counters(
        self,
        c_key: EMUClientKey,
        cnt_filter: Sequence[str] | None = None,
        zero: bool = True,
        verbose: bool = True,
    ) -> dict[str, Any]:
        """The counters of a client by table, with what they mean; without ``verbose`` numbers only."""
        return self._of_client(c_key).get_counters(None, cnt_filter, zero, verbose)

    def clear_client_counters(self, c_key: EMUClientKey) -> Any:
        """Let the counters of a client begin at zero."""
        return self._of_client(c_key).clear_counters()

    def get_ns_counters(
        self,
        ns_key: EMUNamespaceKey,
        cnt_filter: Sequence[str] | None = None,
        zero: bool = True,
        verbose: bool = True,
    ) -> dict[str, Any]:
        """The counters of a namespace by table, with what they mean; without ``verbose`` numbers only."""
        return self._of_ns(ns_key).get_counters(None, cnt_filter, zero, verbose)

    def clear_ns_counters(self, ns_key: EMUNamespaceKey) -> Any:
        """Let the counters of a namespace begin at zero."""
        return self._of_ns(ns_key).clear_counters()


Outcome = tuple[Any, STLError | None]
"""The result and None, or None and why there is none."""


class PingPlugin(NamespacePlugin):
    """A plugin whose clients can ping, one address at a time each."""

    START: ClassVar[str]
    STATS: ClassVar[str]
    STOP: ClassVar[str]

    def get_ping_stats(self, c_key: EMUClientKey, zero: bool = True) -> Outcome:
        """What the last ping of a client counts, under "icmp_ping_stats"; latencies are in microseconds."""
        return self._outcome(self.STATS, c_key, zero=zero)

    def stop_ping(self, c_key: EMUClientKey) -> Outcome:
        """Stop the ping of a client."""
        return self._outcome(self.STOP, c_key)

    def _outcome(self, method: str, c_key: EMUClientKey, **params: Any) -> Outcome:
        try:
            return self._to_client(method, c_key, **params), None
        except STLError as error:
            return None, error


def as_bytes(kind: type[EMUType], address: object) -> list[int] | None:
    """An address of any form as the server wants it."""
    return None if address is None else kind(address).V()
