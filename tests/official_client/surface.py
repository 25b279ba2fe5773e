"""Print the public names of the clients of TRex's official client as one JSON object.

Runs in the client's own environment, as session.py does. Of each class: its methods and properties with their
parameters (None where there are none), and what an object has besides.
"""

# ruff: noqa: I001  # the order of imports matters here
import inspect
import json

import modern_python  # noqa: F401  # answers what the client cannot find in today's Python
import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
from trex.astf.api import ASTFClient
from trex.emu.api import EMUClient
from trex.stl.api import STLClient


def parameters(kind, name):
    """The names of the parameters of a method, without its object."""
    value = getattr(kind, name)
    return list(inspect.signature(value).parameters)[1:] if inspect.isroutine(value) else None


def names(kind):
    """The public names of a class and of an object of it."""
    found = {name: parameters(kind, name) for name in dir(kind) if not name.startswith("_")}
    of_object = [name for name in vars(kind()) if not name.startswith("_") and name not in found]
    return {"of_class": found, "of_object": sorted(of_object)}


print(json.dumps({kind.__name__: names(kind) for kind in (STLClient, ASTFClient, EMUClient)}))
