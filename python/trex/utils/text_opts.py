"""``trex.utils.text_opts`` of existing scripts."""

from __future__ import annotations

import allosaur._compat_text as _names
from allosaur._compat_missing import from_api
from allosaur._compat_text import *

__all__ = _names.__all__


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
