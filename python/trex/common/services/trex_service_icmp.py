"""``trex.common.services.trex_service_icmp`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.services._icmp import ServiceFilterICMP
from allosaur.services._icmp import STLServiceICMP as ServiceICMP

__all__ = ["ServiceFilterICMP", "ServiceICMP"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
