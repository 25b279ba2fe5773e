"""How every result in JSON begins: who made it, in which form, when and where."""

from __future__ import annotations

import platform
from datetime import datetime, timezone
from typing import Any

SCHEMA = 1
"""The form of results. It grows by one when a key goes or means something else; new keys leave it."""
_STARTED = datetime.now(timezone.utc)
"""This is imported when a command begins."""


def heading(command: str) -> dict[str, Any]:
    """Return the first keys of a result; docs/guide/command-line.md describes them."""
    import allosaur

    return {
        "command": command,
        "tool": {"name": "allosaur", "version": allosaur.__version__},
        "schema": SCHEMA,
        "started": _STARTED.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "host": platform.node(),
    }
