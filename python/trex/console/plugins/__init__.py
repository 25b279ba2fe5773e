"""``trex.console.plugins`` of existing scripts."""

from __future__ import annotations

import allosaur.compat._plugin as _names
import allosaur.compat._text as _text
from allosaur._from_api import from_api
from allosaur.compat._plugin import *
from allosaur.compat._text import *

__all__ = [*_names.__all__, *_text.__all__]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
