"""``trex.common.trex_vlan`` of existing scripts."""

from allosaur._vlan import VLAN

__all__ = ["VLAN"]
