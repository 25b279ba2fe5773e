"""``from trex.astf.api import *`` of existing scripts."""

from __future__ import annotations

from typing import Any

import allosaur.api as _api
from allosaur.api import *

__all__ = _api.__all__


def __getattr__(name: str) -> Any:
    return getattr(_api, name)
