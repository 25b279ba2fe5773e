"""``trex.emu.trex_emu_counters`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.emulation._counters import DataCounter

__all__ = ["DataCounter"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
