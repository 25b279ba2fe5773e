"""Stateful profiles from files: Python with its tunables, and JSON. Errors say the file and the line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..streams._loader import as_keywords, as_list, located_module, named, no_tunable, registered
from ..streams._tunable_names import warn_of_unread


@contextmanager
def running(path: Path, tunables: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """What the ``get_profile`` of a Python file gives, and its tunables with their defaults.

    For as long as the ``with`` block lasts errors say the line of the file. Raises ``STLProfileError``.
    """
    with located_module(path) as module:
        get_profile = registered(path, module, "get_profile")
        profile = get_profile(**_arguments(path, get_profile, tunables))
        yield profile, _defaults(inspect.signature(get_profile).parameters)


def _arguments(path: Path, get_profile: Callable[..., Any], tunables: dict[str, Any]) -> dict[str, Any]:
    """What ``get_profile`` gets, in the old style (keyword arguments) or the new (a list for argparse)."""
    parameters = inspect.signature(get_profile).parameters
    takes_all = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    if "tunables" in parameters:
        others = {name: value for name, value in tunables.items() if name != "tunables"}
        kept = others if takes_all else {name: others[name] for name in others if name in parameters}
        return {**kept, "tunables": as_list(tunables)}
    keywords = as_keywords(path, tunables)
    unknown = [name for name in keywords if name not in parameters]
    known = named(parameters)
    if unknown and not takes_all:
        raise no_tunable(path, unknown[0], known)
    warn_of_unread(path, get_profile, unknown, known)
    # With **kwargs alone a profile may look for the list itself, as it comes from TRex's client.
    return {**keywords, "tunables": as_list(tunables)} if takes_all else keywords


def _defaults(parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    return {
        name: one.default for name, one in parameters.items() if one.default is not inspect.Parameter.empty
    }
