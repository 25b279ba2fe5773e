"""``trex.common.services.trex_service_arp`` of existing scripts."""

from allosaur._services._arp import ARPRecord, ServiceFilterARP
from allosaur._services._arp import STLServiceARP as ServiceARP

__all__ = ["ARPRecord", "ServiceARP", "ServiceFilterARP"]
