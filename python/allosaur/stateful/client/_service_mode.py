"""Service mode of a server for stateful traffic, which all its ports have together."""

from __future__ import annotations

from typing import Any

from ..._errors import STLArgumentError
from ...client._places import Ports
from ...client._service_mode import ALL_MASK, NO_TCP_UDP_MASK, ServiceMode
from ._session import StatefulSession


class StatefulServiceMode(ServiceMode):
    """Service mode of the whole server."""

    def set_service_mode(
        self,
        ports: Ports = None,
        enabled: bool = True,
        filtered: bool = False,
        mask: int | None = None,
    ) -> None:
        """Switch service mode of the whole server; ``ports`` is accepted: existing scripts give it.

        In service mode ports answer ARP and ping, and packets can be captured and queued. ``filtered``
        shows only the protocols of ``mask``, beside traffic at full rate: the sum of 1 (all but TCP and
        UDP, which must be in it), 2 BGP, 4 DHCP, 8 what a transport stack of the client has open,
        16 mDNS; 255 is all. Raises ``STLError``.
        """
        for name, value in (("enabled", enabled), ("filtered", filtered)):
            if not isinstance(value, bool):
                raise STLArgumentError(name, value, [True, False])
        fields: dict[str, Any] = {"enabled": enabled and not filtered, "filtered": filtered}
        if filtered:
            is_mask = isinstance(mask, int) and not isinstance(mask, bool) and 0 < mask <= ALL_MASK
            if not is_mask or not (mask or 0) & NO_TCP_UDP_MASK:
                raise STLArgumentError("mask", mask, f"1 to {ALL_MASK}, with 1 (all but TCP and UDP) in it")
            fields["mask"] = mask
        elif mask is not None:
            raise STLArgumentError("mask", mask, "no mask, or filtered=True with it")
        session = self._connection.session()
        assert isinstance(session, StatefulSession)  # the kind of this client
        session.rpc.call("service", handler=session.owner_handler(), **fields)
        self._connection.refresh(self._connection.all_ports())
