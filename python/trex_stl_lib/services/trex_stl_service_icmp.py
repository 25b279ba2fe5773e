"""``trex_stl_lib.services.trex_stl_service_icmp`` of existing scripts."""

from allosaur import STLServiceICMP
from allosaur._from_api import from_api

__all__ = ["STLServiceICMP"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
