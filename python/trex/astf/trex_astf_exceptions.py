"""``trex.astf.trex_astf_exceptions`` of existing scripts."""

from allosaur._stateful._errors import (
    ASTFError,
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
    "ASTFError",
    "ASTFErrorBadIp",
    "ASTFErrorBadIpRange",
    "ASTFErrorBadMac",
    "ASTFErrorBadParamCombination",
    "ASTFErrorBadTG",
    "ASTFErrorMissingParam",
    "ASTFErrorOverlapIP",
    "ASTFErrorWrongType",
]
