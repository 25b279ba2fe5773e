"""``trex.stl.trex_stl_hltapi`` of existing scripts: ``STLHltStream``, and all of ``allosaur.api``."""

from __future__ import annotations

import allosaur.api as _api
from allosaur._from_api import from_api
from allosaur.api import *
from allosaur.compat._missing_names import HLT
from allosaur.hlt import DEFAULTS as traffic_config_kwargs  # noqa: N811 (the name of existing scripts)
from allosaur.hlt import STLHltStream

__all__ = [*_api.__all__, *HLT, "STLHltStream", "traffic_config_kwargs"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
