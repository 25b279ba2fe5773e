"""``trex.common.services.trex_service_arp`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.services._arp import ARPRecord, ServiceFilterARP
from allosaur.services._arp import STLServiceARP as ServiceARP

__all__ = ["ARPRecord", "ServiceARP", "ServiceFilterARP"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
