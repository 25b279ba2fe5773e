"""``trex.emu.trex_emu_ipfix_generators`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.emulation._ipfix import IpfixGenerators

__all__ = ["IpfixGenerators"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
