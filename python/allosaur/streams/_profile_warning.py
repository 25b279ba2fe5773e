"""What a profile is warned of while it is loaded: a run tells it with its result."""

from __future__ import annotations


class ProfileWarning(UserWarning):
    """A profile does what its author may not have meant."""
