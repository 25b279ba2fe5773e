"""``trex.emu.trex_emu_ipfix_generators`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.emulation._ipfix import IpfixGenerators
from allosaur.emulation._ipfix_avc import AVCGenerators

__all__ = ["AVCGenerators", "IpfixGenerators"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
