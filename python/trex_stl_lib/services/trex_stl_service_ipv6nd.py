"""``trex_stl_lib.services.trex_stl_service_ipv6nd`` of existing scripts."""

from allosaur import STLServiceIPv6ND
from allosaur._from_api import from_api

__all__ = ["STLServiceIPv6ND"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
