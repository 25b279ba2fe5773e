"""``trex.common.trex_exceptions`` of existing scripts."""

from allosaur._errors import TRexArgumentError, TRexError, TRexTimeoutError, TRexTypeError

__all__ = ["TRexArgumentError", "TRexError", "TRexTimeoutError", "TRexTypeError"]
