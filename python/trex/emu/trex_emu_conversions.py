"""``trex.emu.trex_emu_conversions`` of existing scripts."""

from allosaur import HostPort, Ipv4, Ipv6, Mac
from allosaur._from_api import from_api
from allosaur.emulation._values import EMUType

__all__ = ["EMUType", "HostPort", "Ipv4", "Ipv6", "Mac"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
