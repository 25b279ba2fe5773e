"""``trex.astf.trex_astf_exceptions`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.stateful._errors import (
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


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
