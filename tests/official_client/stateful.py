"""Compile stateful profiles with TRex's official client, and print what each became as one JSON object.

Runs in the client's own environment, as session.py does. Each line of the standard input is a JSON list:
the file of a profile, and its tunables. What cannot be loaded is printed as its error.

usage: stateful.py < PROFILES
"""

# ruff: noqa: I001  # the order of imports matters here
import contextlib
import io
import json
import sys

import modern_python  # noqa: F401  # answers what the client cannot find in today's Python
import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
from trex.astf.trex_astf_profile import ASTFProfile


def compiled(path, tunables):
    """The words of the protocol that a profile becomes."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            return {"profile": json.loads(json.dumps(ASTFProfile.load(path, **tunables).to_json()))}
        except Exception as error:
            return {"error": str(error)}


if __name__ == "__main__":
    print(json.dumps([compiled(*json.loads(line)) for line in sys.stdin]))
