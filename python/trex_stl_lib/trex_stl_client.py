"""``trex_stl_lib.trex_stl_client`` of existing scripts."""

from allosaur import PacketBuffer, STLClient

__all__ = ["PacketBuffer", "STLClient"]
