"""The first lines of every command: Ctrl-C while its modules are still imported ends it without a traceback.

Imports nothing of the package before that is so.
"""

from __future__ import annotations

import sys
from typing import NoReturn

_EXIT_INTERRUPTED = 130


def launch(module: str = "allosaur.cli._main") -> NoReturn:
    """Run the ``main`` of a module, and leave with its exit code."""
    try:
        import importlib
        import signal

        # A signal that the shell has this process ignore stays ignored.
        is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        main = importlib.import_module(module).main
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(_EXIT_INTERRUPTED)
