"""The `allosaur` command line: its commands are objects, listed in `commands`.

Only :func:`main` is public. What a command needs is imported when it runs, so that `allosaur --help`
answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from allosaur.cli._main import main

__all__ = ["main"]


def __getattr__(name: str) -> Any:
    # Not before it is asked for: `python -m allosaur.cli` says first what Ctrl-C does.
    if name == "main":
        from allosaur.cli._main import main

        return main
    raise AttributeError(f"module 'allosaur.cli' has no attribute {name!r}")
