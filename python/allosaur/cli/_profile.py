"""Loading a profile from a file, and saying clearly why that failed."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _shipped
from allosaur.cli._errors import CommandError, bad_input, brief
from allosaur.cli._options import Tunable

if TYPE_CHECKING:
    from allosaur import STLProfile


def merged(tunables: Iterable[Mapping[str, Tunable]]) -> dict[str, Tunable]:
    """Return all `-t` options together; the last one of a name counts."""
    return {key: value for one in tunables for key, value in one.items()}


@contextlib.contextmanager
def noted_warnings() -> Iterator[list[str]]:
    """Give the list of what a profile is warned of while it loads; each is printed once, as before."""
    from allosaur.streams._profile_warning import ProfileWarning

    noted: list[str] = []
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, ProfileWarning):
            # A profile is loaded for each port.
            if str(message) in noted:
                return
            noted.append(str(message))
        shown(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ProfileWarning)
        warnings.showwarning = show
        yield noted


def wrong(path: Path, error: BaseException) -> CommandError:
    """Return the error for a profile that cannot be loaded: itself is wrong, or what was given to it."""
    from allosaur._errors import TunableError
    from allosaur.streams._profile import CAPTURES

    # It names the profile, and the line where there is one. What is wrong with a tunable or a capture has
    # its own remedy.
    if isinstance(error, TunableError) or path.suffix in CAPTURES:
        return bad_input(brief(error))
    return bad_input(f"{brief(error)}; correct the profile and run again")


def load(path: Path, direction: int, port: int, tunables: Mapping[str, Tunable]) -> STLProfile:
    """Load a profile for one port. Raises :class:`CommandError` with the line that is wrong."""
    _shipped.check(path)
    from allosaur import STLError, STLProfile

    try:
        # What a profile prints must not mix with our own output, which may be JSON.
        with contextlib.redirect_stdout(sys.stderr):
            profile = STLProfile.load(str(path), direction=direction, port_id=port, **tunables)
            streams = profile.get_streams()
    except STLError as error:
        raise wrong(path, error) from error
    if not streams:
        raise bad_input(f"profile {path}: it has no streams; its get_streams() must return at least one")
    return profile
