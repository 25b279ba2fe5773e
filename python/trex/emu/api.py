"""``trex.emu.api`` of existing scripts: all names of ``allosaur.api``."""

from __future__ import annotations

import allosaur.api as _api
from allosaur._from_api import from_api
from allosaur.api import *

__all__ = _api.__all__


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
