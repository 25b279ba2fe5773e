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
    """Its state: 1 nobody asked for a name yet, 2 the method is agreed on or carried out, 3 the
    method is through, 4 the client is in, 5 it is out."""
    method: int
    """The type of the EAP method that was last carried out; 0 for none."""
    eap_version: int
    """The version of EAPOL."""
    reason: NotRequired[str]
    """Of methods with TLS: why it failed."""
    tls_version: NotRequired[str]
    """Of methods with TLS: its version, once that is known."""
