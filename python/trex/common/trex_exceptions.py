"""``trex.common.trex_exceptions`` of existing scripts."""

from allosaur._compat_missing import from_api
from allosaur._errors import TRexArgumentError, TRexError, TRexTimeoutError, TRexTypeError

__all__ = ["TRexArgumentError", "TRexError", "TRexTimeoutError", "TRexTypeError"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
