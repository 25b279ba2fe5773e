"""``trex.common.services.trex_service_dhcp`` of existing scripts."""

from allosaur._services._dhcp import ServiceFilterDHCP
from allosaur._services._dhcp import STLServiceDHCP as ServiceDHCP

__all__ = ["ServiceDHCP", "ServiceFilterDHCP"]
