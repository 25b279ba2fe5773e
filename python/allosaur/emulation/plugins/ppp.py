"""PPPoE: clients that dial in. TRex's client has no such object; the methods of the server are its."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import EMUPluginBase, Init
from .._profile import EMUClientKey


class PPPPlugin(EMUPluginBase):
    """``client.ppp``."""

    plugin_name = "PPP"
    INIT_JSON_CLIENT: ClassVar[Init] = {"ppp": {"user": "alice", "password": "secret", "timeout": 5}}

    def get_session(self, c_key: EMUClientKey) -> int:
        """The number of a client's session; 0 while it has none."""
        return int(self._to_client("ppp_c_client_session", c_key))

    def get_ipv4(self, c_key: EMUClientKey) -> str:
        """The IPv4 address that a client was given; "0.0.0.0" while it has none."""
        return str(self._to_client("ppp_c_client_ip", c_key))

    def get_server_mac(self, c_key: EMUClientKey) -> str:
        """The MAC address of the access concentrator that a client talks to."""
        return str(self._to_client("ppp_c_server_mac", c_key))
