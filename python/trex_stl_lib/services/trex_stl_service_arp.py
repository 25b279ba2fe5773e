"""``trex_stl_lib.services.trex_stl_service_arp`` of existing scripts."""

from allosaur import STLServiceARP
from allosaur._from_api import from_api

__all__ = ["STLServiceARP"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
