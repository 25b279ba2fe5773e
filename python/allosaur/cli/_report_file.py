"""The file of a report: whether it can be there, and writing it. What is in it is in `allosaur.report`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from allosaur.cli import _output_file
from allosaur.cli._errors import CommandError


def checked(name: str | None) -> Path | None:
    """Return where to write a report, if anywhere. Raises :class:`CommandError` when it cannot be there."""
    if name is None:
        return None
    return _output_file.checked("--report", name)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say what to do when the report cannot be written there, by a :class:`CommandError`."""
    try:
        yield
    except OSError as error:
        raise CommandError(
            f"cannot write the report {path}: {error.strerror}; name another with --report"
        ) from error
