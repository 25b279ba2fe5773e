"""Replies of the RPC: dot1x.

Written from the command table in `crates/emulation`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class Dot1xInfo(TypedDict):
    """Where the authentication of a client stands."""

    state: int
    """Its state: 1 begins, 2 waits for a method, 3 has answered, 4 has failed, 5 is
    authenticated."""
    method: int
    """The type of its EAP method; 0 before there is one."""
    eap_version: int
    """The version of EAP over LAN."""
    reason: NotRequired[str]
    """Of methods with TLS: why it failed."""
    tls_version: NotRequired[str]
    """Of methods with TLS: its version, once that is known."""
