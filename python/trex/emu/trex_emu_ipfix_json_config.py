"""``trex.emu.trex_emu_ipfix_json_config`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.emulation._ipfix_config import IpfixProfileJsonConfig

__all__ = ["IpfixProfileJsonConfig"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
