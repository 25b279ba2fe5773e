"""``trex.emu.trex_emu_ipfix_fields`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.emulation._ipfix_fields import AvcIpfixFields, IpfixFields

__all__ = ["AvcIpfixFields", "IpfixFields"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
