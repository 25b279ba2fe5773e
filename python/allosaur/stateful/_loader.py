"""Stateful profiles from files: Python with its tunables, and JSON. Errors say the file and the line."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .._errors import STLProfileError
from ..streams._loader import as_keywords, as_list, located_module, named, no_tunable, read_text
from ..streams._tunable_names import warn_of_unread
from ._profile import ASTFProfile, ASTFProfileLight

_REGISTER_HELP = "define register() that returns an object with get_profile()"


def load(path: Path, tunables: dict[str, Any]) -> ASTFProfile | ASTFProfileLight:
    """Load a profile by the kind of its file. Raises ``STLProfileError``."""
    if path.suffix == ".py":
        return load_python(path, tunables)
    if path.suffix == ".json":
        return load_json(path)
    raise STLProfileError(f"profile {path}: files ending in '{path.suffix}' are not known, give .py or .json")


def load_json(path: Path) -> ASTFProfileLight:
    """A profile that is in the words of the protocol. Raises ``STLProfileError``."""
    try:
        fields = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise STLProfileError(f"profile {path}, line {error.lineno}: not JSON ({error.msg})") from error
    except RecursionError as error:
        raise STLProfileError(f"profile {path}: its lists and objects are nested too deeply") from error
    try:
        return ASTFProfileLight(fields)
    except STLProfileError as error:
        raise STLProfileError(f"profile {path}: {error}") from error


def load_python(path: Path, tunables: dict[str, Any]) -> ASTFProfile | ASTFProfileLight:
    """A profile from a Python file. Raises ``STLProfileError``."""
    with located_module(path) as module:
        register = getattr(module, "register", None)
        if not callable(register):
            raise STLProfileError(f"profile {path} has no register() function: {_REGISTER_HELP}")
        get_profile = getattr(register(), "get_profile", None)
        if not callable(get_profile):
            raise STLProfileError(
                f"profile {path}: what register() returns has no get_profile(): {_REGISTER_HELP}"
            )
        profile = get_profile(**_arguments(path, get_profile, tunables))
        if not isinstance(profile, (ASTFProfile, ASTFProfileLight)):
            raise STLProfileError(
                f"profile {path}: get_profile() returned {type(profile).__name__}, "
                f"it must return an ASTFProfile"
            )
        # Compiled here, so that an error of a program says the file, and no profile is half good.
        profile.to_json()
    if isinstance(profile, ASTFProfile):
        profile.meta = {"type": "python", "tunables": _defaults(inspect.signature(get_profile).parameters)}
    return profile


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
