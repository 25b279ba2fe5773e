"""Large texts for the server, in pieces.

The first piece carries a hash: the rest is not sent when the server has the text already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

#: The first piece is short: its answer says whether the server has the text already.
FIRST_CHARS = 1_000
OTHER_CHARS = 500_000


def upload(text: str, call: Callable[..., Any]) -> bool:
    """Send a text by calls with the fields of each piece; False when the server had it already."""
    start, size = 0, FIRST_CHARS
    while start < len(text):
        fields: dict[str, Any] = {"fragment": text[start : start + size]}
        is_first, is_last = start == 0, start + size >= len(text)
        if is_first:
            fields["frag_first"] = True
        if is_last:
            fields["frag_last"] = True
        if is_first and not is_last:
            fields["md5"] = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        answer = call(**fields)
        if "md5" in fields and isinstance(answer, dict) and answer.get("matches_loaded"):
            return False
        start, size = start + size, OTHER_CHARS
    return True
