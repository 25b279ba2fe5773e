"""``trex.utils.text_opts`` of existing scripts."""

from __future__ import annotations

import allosaur.compat._text as _names
from allosaur._from_api import from_api
from allosaur.compat._text import *

__all__ = _names.__all__


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
