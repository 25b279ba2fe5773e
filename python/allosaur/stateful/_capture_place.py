"""Where a capture that a profile names is found."""

from __future__ import annotations

import sys
from pathlib import Path

from .._files import no_file
from ._errors import ASTFError

#: The captures that come with this package.
SHIPPED = Path(__file__).resolve().parents[1] / "captures"


def find_capture(name: str | Path) -> Path:
    """The file of a capture. Raises ``ASTFError`` that lists where it was looked for.

    A relative name is looked for beside the profile and in the current folder. A name without a folder is
    also looked for among the captures that come with this package. No capture stands for one of another
    name or folder.
    """
    if not isinstance(name, (str, Path)):
        raise ASTFError(f"file is {name!r}, give the name of a capture")
    path = Path(name)
    places = [path] if path.is_absolute() else [*beside_profile(path), path]
    if path.parent == Path():
        places.append(SHIPPED / path)
    for place in places:
        if place.is_file():
            return place.resolve()
    known = ", ".join(sorted(one.name for one in SHIPPED.glob("*.pcap")))
    for place in places:
        if place.exists():
            raise ASTFError(f"the capture {name}: {place.absolute()} {no_file(place)}")
    looked = ", ".join(str(place.absolute()) for place in places if place.parent != SHIPPED)
    raise ASTFError(
        f"the capture {name} was not found at {looked}: copy it there; "
        f"captures that come with the package have the names {known}"
    )


def beside_profile(path: Path) -> list[Path]:
    """The place relative to the file of the ``get_profile`` that runs, if one does."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "get_profile":
            return [(Path(frame.f_code.co_filename).parent / path).absolute()]
        frame = frame.f_back  # type: ignore[assignment]
    return []
