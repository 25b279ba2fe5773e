"""``trex_stl_lib.services.trex_stl_service_dhcp`` of existing scripts."""

from allosaur import STLServiceDHCP
from allosaur._from_api import from_api

__all__ = ["STLServiceDHCP"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
