"""802.1X: clients that log in at the port of a switch."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _check
from .._plugin import ClientPlugin, Init
from .._profile import EMUClientKey

STATES = {
    1: "EAP_WAIT_FOR_IDENTITY",
    2: "EAP_WAIT_FOR_METHOD",
    3: "EAP_WAIT_FOR_RESULTS",
    4: "EAP_DONE_OK",
    5: "EAP_DONE_FAIL",
}
METHODS = {
    4: "EAP_TYPE_MD5",
    13: "EAP_TYPE_TLS",
    21: "EAP_TYPE_TTLS",
    25: "EAP_TYPE_PEAP",
    26: "EAP_TYPE_MSCHAPV2",
}


class DOT1XPlugin(ClientPlugin):
    """``client.dot1x``."""

    plugin_name = "DOT1X"
    CLIENT_COUNTERS = "dot1x_client_cnt"
    INIT_JSON_NS: ClassVar[Init] = {}
    INIT_JSON_CLIENT: ClassVar[Init] = {
        "dot1x": {"user": "alice", "password": "secret", "timeo_idle": 10, "max_start": 3}
    }

    def get_clients_info(self, c_keys: EMUClientKey | list[EMUClientKey]) -> list[dict[str, Any]]:
        """How far clients of a namespace are: `state`, `method`, `eap_version` of each, in their order.

        Those with methods over TLS also have `tls_version` and `reason`, why the last login failed.
        """
        keys = _check.several("c_keys", c_keys, EMUClientKey)
        if not keys:
            return []
        answer = self._requests.to_clients("dot1x_client_info", keys)
        return [_named(one) for one in (answer if isinstance(answer, list) else [answer])]


def _named(info: dict[str, Any]) -> dict[str, Any]:
    words = {"state": STATES, "method": METHODS}
    return {name: words.get(name, {}).get(value, value) for name, value in info.items()}
