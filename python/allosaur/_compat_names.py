"""Names that only existing TRex scripts use; new scripts need none of them."""

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
]


class CTRexVmInsFixHwCs:
    """The values of ``l4_type`` of ``STLVmFixChecksumHw``."""

    L4_TYPE_UDP = 11
    L4_TYPE_TCP = 13
    L4_TYPE_IP = 17
