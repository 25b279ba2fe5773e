"""``trex.stl.trex_stl_client`` of existing scripts."""

from allosaur import PacketBuffer, STLClient
from allosaur._from_api import from_api

__all__ = ["PacketBuffer", "STLClient"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
