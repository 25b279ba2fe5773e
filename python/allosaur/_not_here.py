"""Attributes of TRex's clients that ours do not have: each says so, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ._errors import NotInAllosaurAttributeError


class SaysWhatIsMissing:
    """A client that names what it lacks of TRex's; for ``hasattr`` it is not there."""

    _not_here: ClassVar[Mapping[str, str]] = {}
    """Names of TRex's client, and why each is missing with what to use instead."""

    if not TYPE_CHECKING:  # else every name would be one that is there

        def __getattr__(self, name: str) -> Any:
            what = type(self)._not_here.get(name)
            if what is not None:
                raise NotInAllosaurAttributeError(f"{type(self).__name__}.{name}", what)
            words = f"'{type(self).__name__}' object has no attribute '{name}'"
            raise AttributeError(words, name=name, obj=self)


def explained(names_by_reason: Mapping[str, str]) -> dict[str, str]:
    """The reason of each name, from the names of each reason with blanks in between."""
    return {name: reason for reason, names in names_by_reason.items() for name in names.split()}
