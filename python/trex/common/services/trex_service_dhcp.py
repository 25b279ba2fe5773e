"""``trex.common.services.trex_service_dhcp`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.services._dhcp import ServiceFilterDHCP
from allosaur.services._dhcp import STLServiceDHCP as ServiceDHCP

__all__ = ["ServiceDHCP", "ServiceFilterDHCP"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
