"""``trex.common.services.trex_service_ipv6`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.services._icmpv6 import ServiceFilterIPv6
from allosaur.services._icmpv6 import STLServiceICMPv6 as ServiceICMPv6
from allosaur.services._scan6 import STLServiceIPv6Scan as ServiceIPv6Scan

__all__ = ["ServiceFilterIPv6", "ServiceICMPv6", "ServiceIPv6Scan"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
