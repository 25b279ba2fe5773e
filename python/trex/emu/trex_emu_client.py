"""``trex.emu.trex_emu_client`` of existing scripts."""

from allosaur import EMUClient
from allosaur._from_api import from_api

__all__ = ["EMUClient"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
