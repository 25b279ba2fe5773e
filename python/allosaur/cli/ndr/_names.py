"""The names of further tests of RFC 2544."""

from __future__ import annotations

import argparse

FRAME_LOSS, BACK_TO_BACK, RECOVERY, RESET = "frame-loss", "back-to-back", "recovery", "reset"
_NAMES = (FRAME_LOSS, BACK_TO_BACK, RECOVERY, RESET)


def tests(text: str) -> list[str]:
    """Read the names of tests for `argparse`."""
    words = [word.strip() for word in text.split(",")]
    unknown = [word for word in words if word not in _NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no test {unknown[0]!r}; there are {', '.join(_NAMES)}")
    return list(dict.fromkeys(words))
