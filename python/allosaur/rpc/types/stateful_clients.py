"""Replies of the RPC: stateful mode: clients.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class AddressSpan(TypedDict):
    """Addresses in a row."""

    start: str
    """The first."""
    end: str
    """The last."""


Distributed = dict[str, dict[str, AddressSpan]]
"""By client port, by data thread of the port, the addresses of a pool that it would have."""


class ClientInfo(TypedDict):
    """What is known of a client."""

    Found: int
    """1 when a profile that is started has this client, else 0."""
    state: NotRequired[Literal["Active", "Inactive"]]
    """Whether it begins flows; there when it was found."""


ClientsInfo = dict[str, ClientInfo]
"""By the address as a number, what is known of each client that was asked about."""


class IgnoredMac(TypedDict):
    """A MAC address that gets no answer."""

    mac_addr: int
    """The address as a number of 48 bits."""


IgnoredMacs = list[IgnoredMac]
"""The MAC addresses that get no answer."""


class IgnoredAddress(TypedDict):
    """An IPv4 address that gets no answer."""

    ip: int
    """The address as a number."""


IgnoredAddresses = list[IgnoredAddress]
"""The IPv4 addresses that get no answer."""
