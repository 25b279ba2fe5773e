"""What TRex's packages have and this one does not: names say so when used, modules when imported.

``from trex.stl.api import *`` gives a ``Missing`` for such a name: a profile that does not use it runs, and
one that does ends at the line that uses it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from .._errors import NotInAllosaurError
from ._missing_names import MODULES, NAMES

_EXAMPLES = "trex.examples"


class NotInAllosaurModuleError(ModuleNotFoundError):
    """A module of TRex's client that is not built yet, or never will be."""


class Missing:
    """Stands for a name of TRex's client; every use of it raises ``NotInAllosaurError``."""

    def __init__(self, name: str, what: str) -> None:
        self._message = f"{name} is not in Allosaur yet: {what}"

    def _refuse(self, *_arguments: object, **_keywords: object) -> NoReturn:
        raise NotInAllosaurError(self._message)

    __call__ = __getitem__ = __iter__ = __len__ = __enter__ = __exit__ = __mro_entries__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotInAllosaurError(self._message)

    def __repr__(self) -> str:
        return f"<{self._message}>"


def missing(name: str) -> Missing | None:
    """What stands for a name of TRex's client, or None if that has no such name either."""
    return Missing(name, NAMES[name]) if name in NAMES else None


class _MissingModules(importlib.abc.MetaPathFinder):
    """Comes last: a module of TRex's client that nothing else has gets an error that says what it is."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == _EXAMPLES and (copy := _copied_examples()) is not None:
            return copy
        for prefix, what in MODULES.items():
            if fullname == prefix or fullname.startswith(f"{prefix}."):
                raise NotInAllosaurModuleError(f"{fullname} is not in Allosaur yet: {what}", name=fullname)
        return None


def _copied_examples() -> importlib.machinery.ModuleSpec | None:
    """The examples of a copy of TRex's repository: one that is on Python's path, or whose script runs.

    They are TRex's scripts, and import each other by that name; what else they import is ours.
    """
    folder, _, name = _EXAMPLES.partition(".")
    found = []
    for entry in sys.path:
        here = Path(entry or ".").resolve()
        above = [one for one in (here, *here.parents) if one.name == name and one.parent.name == folder]
        found += [str(one.parent) for one in above] or [str(here / folder)]
    spec = importlib.machinery.PathFinder.find_spec(_EXAMPLES, found)
    if spec is not None and spec.submodule_search_locations is not None:
        # Python would look for the folder again within ours.
        spec.submodule_search_locations = list(spec.submodule_search_locations)
    return spec


def install() -> None:
    """Let missing modules say what they are."""
    if not any(type(finder).__name__ == _MissingModules.__name__ for finder in sys.meta_path):
        sys.meta_path.append(_MissingModules())
