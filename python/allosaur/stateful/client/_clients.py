"""What a stateful client does with addresses: clients that take part, and whom to leave alone."""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

from ..._errors import STLRpcError
from .._arguments import U32_MAX, as_number, ipv4, whole
from .._errors import ASTFError, ASTFErrorBadMac
from ._connection import StatefulConnection

_MAC = re.compile(r"[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}")
_MAC_MAX = (1 << 48) - 1
_IGNORED_MAX = 1000
_PULL_INTERVAL_S = 0.2

#: An IPv4 address, as text or number.
Address = str | int


class Clients:
    """Clients of running profiles, one by one; MAC and IPv4 addresses that get no answer."""

    def __init__(self, connection: StatefulConnection) -> None:
        self._connection = connection

    def set_client_enable(self, client_list: Iterable[Address], is_enable: bool) -> None:
        """Let clients, by IPv4 address, open flows or not."""
        attributes = [{"client_ip": _number("client_list", address)} for address in client_list]
        self._enable(attributes, is_enable, is_range=False)

    def set_client_enable_range(self, client_start: Address, client_end: Address, is_enable: bool) -> None:
        """Let all clients of a range of IPv4 addresses open flows or not."""
        self._enable([_range(client_start, client_end)], is_enable, is_range=True)

    def get_clients_info(
        self, client_list: Iterable[Address], timeout: float = 10
    ) -> dict[str, dict[str, Any]]:
        """Whether clients are there (``Found``), and their ``state``, by their address as a number.

        ``timeout`` in seconds is how long the server may take to gather it.
        """
        attributes = [{"client_ip": _number("client_list", address)} for address in client_list]
        return self._clients_info(attributes, False, timeout)

    def get_clients_info_range(
        self, client_start: Address, client_end: Address, timeout: float = 10
    ) -> dict[str, dict[str, Any]]:
        """As ``get_clients_info``, of a range of IPv4 addresses."""
        return self._clients_info([_range(client_start, client_end)], True, timeout)

    def set_ignored_macs_ips(
        self,
        mac_list: Sequence[Address] | None = None,
        ip_list: Sequence[Address] | None = None,
        is_str: bool = True,
    ) -> None:
        """Answer nothing, not even by a reset, to these MAC and IPv4 addresses, up to 1000 of each.

        They replace those from before. Addresses are text or numbers; ``is_str`` is accepted.
        """
        macs = _few("mac_list", [_mac_number(mac) for mac in mac_list or []])
        addresses = _few("ip_list", [_number("ip_list", address) for address in ip_list or []])
        call = self._connection.call
        call("set_ignored_macs", mac_list=[{"mac_addr": mac} for mac in macs])
        call("set_ignored_ips", ip_list=[{"ip": address} for address in addresses])

    def get_ignored_macs_ips(self, to_str: bool = True) -> dict[str, list[Any]]:
        """The addresses of ``set_ignored_macs_ips``: "ips" and "macs", as text or numbers."""
        call = self._connection.call
        addresses = [entry["ip"] for entry in call("get_ignored_ips") or []]
        macs = [entry["mac_addr"] for entry in call("get_ignored_macs") or []]
        if not to_str:
            return {"ips": addresses, "macs": macs}
        return {
            "ips": [str(ipaddress.IPv4Address(address)) for address in addresses],
            "macs": [mac.to_bytes(6, "big").hex(":") for mac in macs],
        }

    def _enable(self, attributes: list[dict[str, int]], is_enable: bool, is_range: bool) -> None:
        params = {"is_enable": bool(is_enable), "is_range": is_range, "attr": attributes}
        self._connection.call("enable_disable_client", **params)

    def _clients_info(
        self, attributes: list[dict[str, int]], is_range: bool, timeout_s: float
    ) -> dict[str, dict[str, Any]]:
        call = self._connection.call
        call("get_clients_info_start", is_range=is_range, attr=attributes)
        end_s = time.monotonic() + timeout_s
        while True:
            try:
                answer: dict[str, dict[str, Any]] = call("get_clients_info_pull")
                return answer
            except STLRpcError:
                # The data threads have not all answered yet.
                if time.monotonic() > end_s:
                    raise
                time.sleep(_PULL_INTERVAL_S)


def _number(name: str, address: Address) -> int:
    if isinstance(address, int) and not isinstance(address, bool):
        return whole(name, "an address", address, 0, U32_MAX)
    return as_number(ipv4(name, "an address", address))


def _range(start: Address, end: Address) -> dict[str, int]:
    first, last = _number("client_start", start), _number("client_end", end)
    if first > last:
        raise ASTFError(f"the range of clients is empty, {start} comes after {end}: swap them")
    return {"client_start_ip": first, "client_end_ip": last}


def _mac_number(mac: Address) -> int:
    if isinstance(mac, int) and not isinstance(mac, bool):
        return whole("mac_list", "an address", mac, 0, _MAC_MAX)
    if not isinstance(mac, str) or not _MAC.fullmatch(mac):
        raise ASTFErrorBadMac(f"mac_list: {mac!r} is no MAC address, give one such as '02:00:00:00:00:01'")
    return int("".join(part.zfill(2) for part in mac.split(":")), 16)


def _few(name: str, values: Sequence[int]) -> list[int]:
    kept = list(dict.fromkeys(values))
    if len(kept) > _IGNORED_MAX:
        raise ASTFError(f"{name} has {len(kept)} addresses, give at most {_IGNORED_MAX}")
    return kept
