"""What can go wrong in a stateful profile. The subclasses are for scripts that catch them by name."""

from __future__ import annotations

from .._errors import STLError


class ASTFError(STLError):
    """A stateful profile, topology or argument cannot be used; the message says what and where."""


class ASTFErrorBadParamCombination(ASTFError):
    """Parameters that exclude each other were given together, or all of them are missing."""


class ASTFErrorMissingParam(ASTFError):
    """A parameter is missing."""


class ASTFErrorWrongType(ASTFError):
    """A parameter has the wrong type."""


class ASTFErrorBadIp(ASTFError):
    """A parameter is not an address."""


class ASTFErrorBadIpRange(ASTFError):
    """A range of addresses cannot be used."""


class ASTFErrorBadMac(ASTFError):
    """A parameter is not a MAC address."""


class ASTFErrorBadTG(ASTFError):
    """A template group's name cannot be used, or is not known."""


class ASTFErrorOverlapIP(ASTFError):
    """Two pools of clients share addresses."""
