"""``trex_stl_lib.services.trex_stl_service`` of existing scripts."""

from allosaur import STLService, STLServiceFilter
from allosaur._from_api import from_api

__all__ = ["STLService", "STLServiceFilter"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
