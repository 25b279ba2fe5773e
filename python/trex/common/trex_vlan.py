"""``trex.common.trex_vlan`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.packets._vlan import VLAN

__all__ = ["VLAN"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
