"""Where a capture that a profile names is found.

What does not live here: what is in it (``_captured``).
"""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

from ._errors import ASTFError

#: The captures that come with this package.
SHIPPED = Path(__file__).resolve().parents[1] / "captures"
_TREX_NAME = re.compile(r"delay_10_(?P<name>\w+?)_0\.pcap")


def find_capture(name: str | Path) -> Path:
    """The file of a capture. Raises ``ASTFError`` that lists where it was looked for.

    A relative name is looked for beside the profile, in the current folder, and among the captures that
    come with this package, by its file name alone; TRex's names (``delay_10_dns_0.pcap``) stand for ours
    of the same application (``dns.pcap``) there.
    """
    if not isinstance(name, (str, Path)):
        raise ASTFError(f"file is {name!r}, give the name of a capture")
    path = Path(name)
    places = [path] if path.is_absolute() else [*_beside_profile(path), path]
    for place in places:
        if place.is_file():
            return place.resolve()
    shipped = _shipped(path)
    if shipped is not None:
        logging.getLogger("allosaur").info("the capture %s is not there: %s is used", name, shipped)
        return shipped
    known = ", ".join(sorted(one.name for one in SHIPPED.glob("*.pcap")))
    looked = ", ".join(str(place.absolute()) for place in places)
    raise ASTFError(
        f"the capture {name} was not found at {looked}; the captures that come with the package are: {known}"
    )


def _shipped(path: Path) -> Path | None:
    shape = _TREX_NAME.fullmatch(path.name)
    names = [path.name] if shape is None else [path.name, f"{shape['name']}.pcap"]
    return next((SHIPPED / name for name in names if (SHIPPED / name).is_file()), None)


def _beside_profile(path: Path) -> list[Path]:
    """The place relative to the file of the ``get_profile`` that runs, if one does."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "get_profile":
            return [(Path(frame.f_code.co_filename).parent / path).absolute()]
        frame = frame.f_back  # type: ignore[assignment]
    return []
