"""Start the console of TRex's official client as its own command does, in the client's own environment.

usage: console.py CONSOLE_OPTION...
"""

# ruff: noqa: I001  # the order of imports matters here
import sys

import modern_python  # noqa: F401  # first: it lets the client import
import lbr_trex_client  # noqa: F401  # sets the import path of the client's parts
from trex.console import trex_console

if __name__ == "__main__":
    sys.argv[0] = "trex-console"
    trex_console.main()
