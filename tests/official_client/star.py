"""Prints as JSON the names that `import *` of TRex's interfaces gives, each with its module."""

import json

import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
import modern_python  # noqa: F401  # answers what the client cannot find in today's Python

found = {}
for interface in ("trex.stl.api", "trex.astf.api", "trex_stl_lib.api"):
    names = {}
    exec(f"from {interface} import *", names)
    found[interface] = {
        name: str(getattr(value, "__module__", None))
        for name, value in names.items()
        if not name.startswith("__")
    }
print(json.dumps(found))
