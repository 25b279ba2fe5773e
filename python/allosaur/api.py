"""Everything a profile or a script needs, for ``from allosaur.api import *``.

The names of this package, and those of Scapy: every layer of which the import is cheap. What is
left out of the star (TLS, SMB, Kerberos, Bluetooth and other large ones) can still be imported
from here by name, or from Scapy.
"""

from __future__ import annotations

import importlib
from typing import Any

import allosaur as _allosaur

from .compat import _missing, _missing_names, _names, _text, _tools
from .packets._scapy_star import scapy_star

#: Modules of Python that TRex's star has, too: profiles use them without an import.
_PYTHON_MODULES = (
    *("array", "base64", "binascii", "calendar", "collections", "copy", "functools", "gzip", "hashlib"),
    *("inspect", "io", "json", "logging", "math", "operator", "os", "random", "re", "select", "socket"),
    *("string", "struct", "subprocess", "sys", "tempfile", "threading", "time", "traceback", "types"),
    *("cProfile", "code", "ctypes", "getopt", "glob", "pstats", "pwd", "yaml"),
)
#: And single names of such modules.
_PYTHON_NAMES = {
    "OrderedDict": "collections",
    "choice": "random",
    "crc32": "zlib",
    "gcd": "math",
    "ioctl": "fcntl",
    "namedtuple": "collections",
    "sizeof": "ctypes",
}


def _collect() -> dict[str, Any]:
    names = dict(scapy_star())
    names.update({name: importlib.import_module(name) for name in _PYTHON_MODULES})
    names.update({name: getattr(importlib.import_module(home), name) for name, home in _PYTHON_NAMES.items()})
    for compat in (_text, _tools, _names):
        names.update({name: getattr(compat, name) for name in compat.__all__})
    for name in _missing_names.STARRED:
        names.setdefault(name, _missing.missing(name))
    names.update({name: getattr(_allosaur, name) for name in _allosaur.__all__ if not name.startswith("_")})
    return names


_found = _collect()
globals().update(_found)
__all__ = sorted(_found)


def __getattr__(name: str) -> Any:
    """A name that is not in the star: of Scapy, or of TRex's client (it says what it lacks)."""
    if name in _missing_names.NAMES:
        return _missing.missing(name)
    if not name.startswith("_"):
        import scapy.all

        if hasattr(scapy.all, name):
            return getattr(scapy.all, name)
    raise AttributeError(f"neither allosaur nor Scapy has '{name}'")
