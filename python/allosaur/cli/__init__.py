"""The `allosaur` command line: its commands are objects, listed in `commands`.

Only :func:`main` is public. What a command needs is imported when it runs, so that `allosaur --help`
answers at once.
"""

from allosaur.cli._main import main

__all__ = ["main"]
