"""Files that a command writes at its end: whether they can be there is asked before anything starts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from allosaur.cli._errors import CommandError, bad_input


def checked(option: str, name: str) -> Path:
    """Return where `option` asks for a file. Raises :class:`CommandError` when it cannot be written there."""
    path = Path(name)
    if not path.parent.is_dir():
        raise bad_input(f"{option} {path}: no folder {path.parent}; make it first")
    if path.is_dir():
        raise bad_input(f"{option} {path}: is a folder; name a file in it")
    is_new = not path.exists()
    if is_new or path.is_file():
        _check_writable(option, path, is_new)
    return path


def write(option: str, path: Path, text: str) -> None:
    """Write the file that `option` asks for. Raises :class:`CommandError`."""
    with writing(option, path):
        path.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def writing(option: str, path: Path) -> Iterator[None]:
    """Say which option's file cannot be written, by a :class:`CommandError`."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{option} {path}: cannot be written: {error.strerror}") from error


def _check_writable(option: str, path: Path, is_new: bool) -> None:
    """Open the file as it will be opened, and leave all as it was: permissions alone do not tell."""
    try:
        with path.open("ab"):
            pass
        if is_new:
            path.unlink()
    except OSError as error:
        raise bad_input(
            f"{option} {path}: cannot be written: {error.strerror}; name another file, or a folder of yours"
        ) from error


@contextlib.contextmanager
def writing_report(path: Path) -> Iterator[None]:
    """Say what to do when a report cannot be written there, by a :class:`CommandError`."""
    try:
        yield
    except OSError as error:
        raise CommandError(
            f"cannot write the report {path}: {error.strerror}; name another with --report"
        ) from error
