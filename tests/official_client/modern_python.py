"""Let TRex's official client, written for Python 3.8, import on Python 3.12 and later.

The client carries a Scapy of 2019 and uses modules that Python dropped since. This module answers those
imports with today's equivalents. It changes nothing in what the client sends or checks. Import it before the
client.
"""

import html
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import shutil
import sys
import types

OLD_MOVES = "scapy.modules.six.moves"
NEW_MOVES = "six.moves"


def _imp() -> types.ModuleType:
    module = types.ModuleType("imp")
    module.reload = importlib.reload
    return module


def _cgi() -> types.ModuleType:
    module = types.ModuleType("cgi")
    module.escape = html.escape
    return module


def _distutils() -> types.ModuleType:
    module = types.ModuleType("distutils")
    module.__path__ = []
    return module


def _distutils_spawn() -> types.ModuleType:
    module = types.ModuleType("distutils.spawn")
    module.find_executable = shutil.which
    return module


REPLACEMENTS = {"imp": _imp, "cgi": _cgi, "distutils": _distutils, "distutils.spawn": _distutils_spawn}


class Answers(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports that nothing else could answer; it stands last in line."""

    def find_spec(self, name, path=None, target=None):
        if name in REPLACEMENTS or name == OLD_MOVES or name.startswith(OLD_MOVES + "."):
            return importlib.machinery.ModuleSpec(name, self)
        return None

    def create_module(self, spec):
        if spec.name in REPLACEMENTS:
            return REPLACEMENTS[spec.name]()
        return importlib.import_module(NEW_MOVES + spec.name[len(OLD_MOVES) :])

    def exec_module(self, module):
        pass


if sys.version_info >= (3, 12):
    sys.meta_path.append(Answers())
