"""``trex.common.trex_exceptions`` of existing scripts."""

from allosaur._errors import TRexArgumentError, TRexError, TRexTimeoutError, TRexTypeError
from allosaur._from_api import from_api

__all__ = ["TRexArgumentError", "TRexError", "TRexTimeoutError", "TRexTypeError"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
