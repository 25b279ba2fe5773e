"""Make streams with the high-level traffic API of TRex's official client, and print them as JSON.

Runs in the client's own environment, as session.py does. Standard input has a list of argument sets; the
output has a list of streams for each.
"""

# ruff: noqa: I001  # the order of imports matters here
import json
import sys

import modern_python  # noqa: F401  # answers what the client cannot find in today's Python
import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
from trex.stl.trex_stl_hltapi import STLHltStream


def made(arguments):
    """The streams of one call, in the form of the protocol."""
    streams = STLHltStream(**arguments)
    return [stream.to_json() for stream in (streams if isinstance(streams, list) else [streams])]


print(json.dumps([made(arguments) for arguments in json.load(sys.stdin)]))
