"""``trex.stl.trex_stl_client`` of existing scripts."""

from allosaur import PacketBuffer, STLClient

__all__ = ["PacketBuffer", "STLClient"]
