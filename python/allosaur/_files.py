"""What a path leads to, in words for whoever gave it."""

from __future__ import annotations

import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISFIFO, "is a pipe, which can be read only once; save what it gives to a file"),
    (stat.S_ISSOCK, "is a socket, not a file"),
    (stat.S_ISCHR, "is a device, not a file"),
    (stat.S_ISBLK, "is a device, not a file"),
)


def no_file(path: str | Path, *, may_be_pipe: bool = False) -> str | None:
    """Say why a path is no file to read, as the end of a sentence that begins with it; None when it is one.

    With ``may_be_pipe`` a pipe (FIFO) is good as well: it will be read once.
    """
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        return "no such file" if missing else f"cannot be read: {error.strerror}"
    if stat.S_ISREG(mode) or (may_be_pipe and stat.S_ISFIFO(mode)):
        return None
    return next((words for is_kind, words in _KINDS if is_kind(mode)), "is not a file")
