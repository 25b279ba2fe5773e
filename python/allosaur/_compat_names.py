"""Names that only existing TRex scripts use; new scripts need none of them."""

from ._compat_addresses import (
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
from ._errors import CTRexPacketBuildException, TRexArgumentError, TRexError, TRexTimeoutError, TRexTypeError
from ._stateful._errors import (
    ASTFErrorBadIp,
    ASTFErrorBadIpRange,
    ASTFErrorBadMac,
    ASTFErrorBadParamCombination,
    ASTFErrorBadTG,
    ASTFErrorMissingParam,
    ASTFErrorOverlapIP,
    ASTFErrorWrongType,
)

__all__ = [
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
]


class CTRexVmInsFixHwCs:
    """The values of ``l4_type`` of ``STLVmFixChecksumHw``."""

    L4_TYPE_UDP = 11
    L4_TYPE_TCP = 13
    L4_TYPE_IP = 17
