"""``trex.common.services.trex_service_icmp`` of existing scripts."""

from allosaur._services._icmp import ServiceFilterICMP
from allosaur._services._icmp import STLServiceICMP as ServiceICMP

__all__ = ["ServiceFilterICMP", "ServiceICMP"]
