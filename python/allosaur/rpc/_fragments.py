"""Large texts for the server, in pieces.

The first piece carries a hash: the rest is not sent when the server has the text already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

#: The first piece is short: its answer says whether the server has the text already.
FIRST_CHARS = 1_000
OTHER_CHARS = 500_000


def pieces(text: str, other_chars: int = OTHER_CHARS) -> Iterator[dict[str, Any]]:
    """The fields of each piece of a text, which has at least one."""
    starts = [0, *range(FIRST_CHARS, len(text), other_chars)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        fields: dict[str, Any] = {"fragment": text[start:end]}
        is_first, is_last = start == 0, end == len(text)
        if is_first:
            fields["frag_first"] = True
        if is_last:
            fields["frag_last"] = True
        if is_first and not is_last:
            fields["md5"] = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        yield fields


def upload(text: str, call: Callable[..., Any]) -> bool:
    """Send a text by calls with the fields of each piece; False when the server had it already."""
    for fields in pieces(text) if text else ():
        answer = call(**fields)
        if "md5" in fields and isinstance(answer, dict) and answer.get("matches_loaded"):
            return False
    return True
