"""Names that only existing TRex scripts use; new scripts need none of them."""

from typing import Any

from .._errors import CTRexPacketBuildException, TRexArgumentError, TRexError, TRexTimeoutError, TRexTypeError
from ..client._places import ALL_PROFILES as ALL_PROFILE_ID
from ..client._places import DEFAULT_PROFILE as DEFAULT_PROFILE_ID
from ..client._service_mode import NO_TCP_UDP_MASK
from ..services._arp import STLServiceARP as ServiceARP
from ..services._context import ServiceContext as ServiceCtx
from ..services._icmp import STLServiceICMP as ServiceICMP
from ..services._icmpv6 import STLServiceICMPv6 as ServiceICMPv6
from ..services._scan6 import STLServiceIPv6Scan as ServiceIPv6Scan
from ..services._service import STLService as Service
from ..services._service import STLServiceFilter as ServiceFilter
from ..stateful._errors import (
    ASTFErrorBadIp,
    ASTFErrorBadIpRange,
    ASTFErrorBadMac,
    ASTFErrorBadParamCombination,
    ASTFErrorBadTG,
    ASTFErrorMissingParam,
    ASTFErrorOverlapIP,
    ASTFErrorWrongType,
)
from ._addresses import (
    increase_ip,
    increase_ipv6,
    increase_mac,
    int2ip,
    int2mac,
    ip2int,
    ipv4_str_to_num,
    is_valid_ipv4,
    is_valid_ipv6,
    is_valid_mac,
    mac2int,
    mac_str_to_num,
)

__all__ = [
    "ALL_PROFILE_ID",
    "DEFAULT_PROFILE_ID",
    "NO_TCP_UDP_MASK",
    "ASTFErrorBadIp",
    "ASTFErrorBadIpRange",
    "ASTFErrorBadMac",
    "ASTFErrorBadParamCombination",
    "ASTFErrorBadTG",
    "ASTFErrorMissingParam",
    "ASTFErrorOverlapIP",
    "ASTFErrorWrongType",
    "CTRexPacketBuildException",
    "CTRexVmInsFixHwCs",
    "Service",
    "ServiceARP",
    "ServiceCtx",
    "ServiceFilter",
    "ServiceICMP",
    "ServiceICMPv6",
    "ServiceIPv6Scan",
    "TRexArgumentError",
    "TRexError",
    "TRexTimeoutError",
    "TRexTypeError",
    "increase_ip",
    "increase_ipv6",
    "increase_mac",
    "int2ip",
    "int2mac",
    "ip2int",
    "ipv4_str_to_num",
    "is_valid_ipv4",
    "is_valid_ipv6",
    "is_valid_mac",
    "mac2int",
    "mac_str_to_num",
    "stl_map_ports",
]


def stl_map_ports(client: Any) -> dict[str, Any]:
    """Which ports are linked: ``client.map_ports()``."""
    linked: dict[str, Any] = client.map_ports()
    return linked


class CTRexVmInsFixHwCs:
    """The values of ``l4_type`` of ``STLVmFixChecksumHw``."""

    L4_TYPE_UDP = 11
    L4_TYPE_TCP = 13
    L4_TYPE_IP = 17
