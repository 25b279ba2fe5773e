"""What TRex's official client sends to a server for some streams and captures, as JSON.

Runs in the client's own environment, as hlt_streams.py does. Standard input has a list of cases, each a
function of CASES and its arguments; the output has a list of streams for each.
"""

# ruff: noqa: I001  # the order of imports matters here
import json
import sys

import modern_python  # noqa: F401  # answers what the client cannot find in today's Python
import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
from wire_cases import made

print(json.dumps([made(name, arguments) for name, arguments in json.load(sys.stdin)]))
