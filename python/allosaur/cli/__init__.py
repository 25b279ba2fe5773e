"""The `allosaur` command line: its commands are listed in `_commands`.

Only :func:`main` is public. Each command has a private module, which is imported when the command is
used, so that `allosaur --help` answers at once.
"""

from allosaur.cli._main import main

__all__ = ["main"]
