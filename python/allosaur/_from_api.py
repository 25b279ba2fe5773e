"""How a module of ``trex`` or ``trex_stl_lib`` finds a name that it does not hold itself."""

from __future__ import annotations

import builtins
import collections
import contextlib
import functools
import importlib
import sys
from typing import Any

from .compat._missing import Missing, NotInAllosaurModuleError


def from_api(module: str, name: str) -> Any:
    """A name that one of TRex's modules has: of ``allosaur.api``, Scapy, TRex's other modules or Python."""
    if name.startswith("__"):
        raise AttributeError(f"module '{module}' has no attribute '{name}'")
    try:
        return importlib.import_module(f"{module}.{name}")
    except NotInAllosaurModuleError:
        return Missing(f"{module}.{name}", "a module of TRex's client")
    except ModuleNotFoundError:
        pass
    import allosaur.api

    for place in (allosaur.api, builtins, collections, contextlib, functools):
        if hasattr(place, name):
            return getattr(place, name)
    if name in sys.stdlib_module_names:
        return importlib.import_module(name)
    raise AttributeError(f"{module}: neither Allosaur, Scapy nor TRex's client has '{name}'")
