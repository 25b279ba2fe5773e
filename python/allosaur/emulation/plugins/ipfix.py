"""IPFIX and NetFlow: clients that export records of flows."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _check
from .._counters import DataCounter
from .._plugin import ClientPlugin, Init
from .._profile import EMUClientKey, EMUNamespaceKey


class IPFIXPlugin(ClientPlugin):
    """``client.ipfix``."""

    plugin_name = "IPFIX"
    NS_COUNTERS = "ipfix_ns_cnt"
    CLIENT_COUNTERS = "ipfix_c_cnt"
    INIT_JSON_CLIENT: ClassVar[Init] = {
        "ipfix": {"netflow_version": 10, "dst": "emu-udp://16.0.0.254:4739", "generators": []}
    }

    def get_ns_counters(
        self, ns_key: EMUNamespaceKey, zero: bool = True, verbose: bool = True
    ) -> dict[str, Any]:
        """The counters of the devices that a namespace makes by itself."""
        counters: DataCounter = self._of_ns(ns_key)
        return counters.get_counters(zero=zero, verbose=verbose)

    def get_gen_info(self, c_key: EMUClientKey) -> dict[str, Any]:
        """The generators of a client by name, with their rates and their templates."""
        answer: dict[str, Any] = self._to_client("ipfix_c_get_gens_info", c_key)
        return dict(answer.get("generators_info") or {})

    def get_exporter_info(self, c_key: EMUClientKey) -> Any:
        """What a client's exporter is, and the files that it wrote."""
        return self._to_client("ipfix_c_get_exp_info", c_key)

    def set_gen_rate(self, c_key: EMUClientKey, gen_name: str, template_rate: float, rate: float) -> Any:
        """Set how many templates and how many packets of data a second a generator sends; 0 leaves it."""
        _check.kind("gen_name", gen_name, str)
        _check.kind("template_rate", template_rate, float, int)
        _check.kind("rate", rate, float, int)
        method = "ipfix_c_set_gen_state"
        return self._to_client(method, c_key, gen_name=gen_name, template_rate=template_rate, rate=rate)

    def enable_generator(self, c_key: EMUClientKey, gen_name: str, enable: bool) -> Any:
        """Let a generator send, or rest."""
        _check.kind("gen_name", gen_name, str)
        _check.kind("enable", enable, bool)
        return self._to_client("ipfix_c_set_gen_state", c_key, gen_name=gen_name, enable=enable)

    def enable_ipfix(self, c_key: EMUClientKey, enable: bool) -> Any:
        """Let all generators of a client send, or rest."""
        _check.kind("enable", enable, bool)
        return self._to_client("ipfix_c_set_state", c_key, enable=enable)
