"""What is measured: the profile at each frame size that was asked for, or as it is; further tests by name."""

from __future__ import annotations

import argparse
from pathlib import Path

from allosaur.cli import _profile, _shipped
from allosaur.cli.ndr._bench import Case

ETHERNET_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""RFC 2544, section 9.1: "Frame sizes to be used on Ethernet: 64, 128, 256, 512, 1024, 1280, 1518"."""
IPV6_SIZES = (64, 128, 256, 512, 768, 1024, 1280, 1518)
"""RFC 5180, section 5.1.1, which adds sizes for Ethernet with IPv6."""
IMIX = "imix"
_LISTS = {"rfc2544": ETHERNET_SIZES, "rfc5180": IPV6_SIZES}
_FRAME_MIN, _FRAME_MAX = 64, 9238


def frame_sizes(text: str) -> list[str]:
    """Read `64,512,imix`, `rfc2544` or `rfc5180` for `argparse`."""
    words: list[str] = []
    for word in text.lower().split(","):
        word = word.strip()
        if word in _LISTS:
            words += [str(size) for size in _LISTS[word]]
        elif word == IMIX or (word.isdecimal() and _FRAME_MIN <= int(word) <= _FRAME_MAX):
            words.append(word)
        else:
            raise argparse.ArgumentTypeError(
                f"{word!r} is no frame size; write bytes with FCS from {_FRAME_MIN} to {_FRAME_MAX}, imix, "
                "rfc2544 or rfc5180, with commas between"
            )
    return list(dict.fromkeys(words))


def cases(options: argparse.Namespace) -> list[Case]:
    """Return the cases in the order in which they are measured."""
    path, tunables = Path(options.profile), _profile.merged(options.tunable)
    if not options.sizes:
        return [Case(path.stem, path, tunables)]
    return [
        Case(IMIX, Path(_shipped.located(IMIX)))
        if size == IMIX
        else Case(f"{size} bytes", path, tunables, int(size))
        for size in options.sizes
    ]


FRAME_LOSS, BACK_TO_BACK, RECOVERY, RESET = "frame-loss", "back-to-back", "recovery", "reset"
_NAMES = (FRAME_LOSS, BACK_TO_BACK, RECOVERY, RESET)


def tests(text: str) -> list[str]:
    """Read the names of tests for `argparse`."""
    words = [word.strip() for word in text.split(",")]
    unknown = [word for word in words if word not in _NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no test {unknown[0]!r}; there are {', '.join(_NAMES)}")
    return list(dict.fromkeys(words))
