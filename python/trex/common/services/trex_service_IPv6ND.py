"""``trex.common.services.trex_service_IPv6ND`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.services._nd import IPv6Neighbor, ServiceFilterIPv6NDP
from allosaur.services._nd import STLServiceIPv6ND as ServiceIPv6ND

__all__ = ["IPv6Neighbor", "ServiceFilterIPv6NDP", "ServiceIPv6ND"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
