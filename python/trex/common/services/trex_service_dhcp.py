"""``trex.common.services.trex_service_dhcp`` of existing scripts."""

from allosaur._compat_missing import from_api
from allosaur._services._dhcp import ServiceFilterDHCP
from allosaur._services._dhcp import STLServiceDHCP as ServiceDHCP

__all__ = ["ServiceDHCP", "ServiceFilterDHCP"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
