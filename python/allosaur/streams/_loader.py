"""Profiles from files: Python with its tunables, JSON, YAML, captures. Errors say the file and the line."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .._errors import STLError, STLProfileError, TunableError
from ..packets._offline import offline
from ._tunable_names import did_you_mean, warn_of_unread


def read_json(path: Path) -> Any:
    """What a JSON file holds. Raises ``STLProfileError``."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise STLProfileError(f"profile {path}, line {error.lineno}: not JSON ({error.msg})") from error
    except RecursionError as error:
        raise STLProfileError(f"profile {path}: its lists and objects are nested too deeply") from error


def read_yaml(path: Path) -> Any:
    """What a YAML file holds. Raises ``STLProfileError``."""
    import yaml

    try:
        return yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise STLProfileError(
            f"profile {path}{where}: not YAML ({getattr(error, 'problem', error)})"
        ) from error


def run_python(path: Path, direction: int, port_id: int, tunables: dict[str, Any]) -> Any:
    """What the ``get_streams`` of a Python file gives. Raises ``STLProfileError``."""
    path = path.resolve()
    with located_module(path) as module:
        get_streams = registered(path, module, "get_streams")
        arguments = _arguments(path, get_streams, {"direction": direction, "port_id": port_id}, tunables)
        return get_streams(**arguments)


def capture_arguments(path: Path, tunables: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The tunables of a capture: the arguments of ``load_pcap``. Raises ``STLProfileError``."""
    arguments = as_keywords(path, tunables)
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise TunableError(
            f"profile {path}: a capture has no tunable '{unknown[0]}', "
            f"its tunables are: {', '.join(known)}{did_you_mean(unknown[0], known)}"
        )
    return arguments


def registered(path: Path, module: types.ModuleType, method: str) -> Callable[..., Any]:
    """The method of what the ``register`` of a profile's module gives. Raises ``STLProfileError``."""
    remedy = f"define register() that returns an object with {method}()"
    register = getattr(module, "register", None)
    if not callable(register):
        raise STLProfileError(f"profile {path} has no register() function: {remedy}")
    found = getattr(register(), method, None)
    if not callable(found):
        raise STLProfileError(f"profile {path}: what register() returns has no {method}(): {remedy}")
    return found  # type: ignore[no-any-return]


@contextmanager
def located_module(path: Path) -> Iterator[types.ModuleType]:
    """Run a Python file as a module, and let errors say its line for as long as a ``with`` block lasts.

    So long, too, Scapy asks no network and no route of this machine.

    Raises ``STLProfileError``.
    """
    source = read_text(path)
    path = path.resolve()
    try:
        code = compile(source, str(path), "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        text = (getattr(error, "text", None) or "").strip()
        where = f", line {line}" if line else ""
        shown = f": {text}" if text else ""
        raise STLProfileError(f"profile {path}{where}: {getattr(error, 'msg', error)}{shown}") from error
    module = types.ModuleType(f"profile_{path.stem}_{id(code):x}")
    module.__file__ = str(path)
    with _imports_from(path.parent, module), _located(path), offline():
        exec(code, module.__dict__)
        yield module


def read_text(path: Path) -> str:
    """The text of a profile's file. Raises ``STLProfileError``."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise STLProfileError(f"profile {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise STLProfileError(f"profile {path} is not UTF-8 text: {error}") from error


def _arguments(
    path: Path, get_streams: Callable[..., Any], context: dict[str, Any], tunables: dict[str, Any]
) -> dict[str, Any]:
    """What ``get_streams`` gets, in the old style (keyword arguments) or the new (a list for argparse)."""
    parameters = inspect.signature(get_streams).parameters
    if "tunables" in parameters:
        return {**_accepted(parameters, context), "tunables": as_list(tunables)}
    keywords = as_keywords(path, tunables)
    takes_all = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    unknown = [name for name in keywords if name not in parameters]
    known = [name for name in named(parameters) if name not in context]
    if unknown and not takes_all:
        raise no_tunable(path, unknown[0], known)
    warn_of_unread(path, get_streams, unknown, known)
    return {**_accepted(parameters, context), **keywords}


def named(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """The parameters that have names of their own."""
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [name for name, parameter in parameters.items() if parameter.kind not in several]


def no_tunable(path: Path, name: str, known: Sequence[str]) -> TunableError:
    """The error for a tunable that a profile does not have."""
    return TunableError(
        f"profile {path} has no tunable '{name}', "
        f"its tunables are: {', '.join(known) or 'none'}{did_you_mean(name, known)}"
    )


def _accepted(parameters: Any, values: dict[str, Any]) -> dict[str, Any]:
    takes_all = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    return {name: value for name, value in values.items() if takes_all or name in parameters}


def as_list(tunables: dict[str, Any]) -> list[str]:
    """Tunables of either style as words of a command line."""
    words = [str(word) for word in tunables.get("tunables") or []]
    for name, value in tunables.items():
        if name != "tunables":
            words += [f"--{name}", str(value)]
    return words


def as_keywords(path: Path, tunables: dict[str, Any]) -> dict[str, Any]:
    """Tunables of either style as keyword arguments: '--size 64' and 'size=64' both give size."""
    keywords = {name: value for name, value in tunables.items() if name != "tunables"}
    words = iter(str(word) for word in tunables.get("tunables") or [])
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if not equals:
            following = next(words, None)
            if following is None or not word.startswith("--"):
                raise TunableError(f"profile {path}: tunable '{word}' has no value, write {name}=VALUE")
            value = following
        keywords[name.replace("-", "_")] = _literal(value)
    return keywords


def _literal(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"True": True, "true": True, "False": False, "false": False, "None": None}.get(text, text)


_JOKES = {"antigravity", "this"}
"""Modules of Python that do something when they are imported."""


@contextmanager
def _imports_from(directory: Path, module: types.ModuleType) -> Iterator[None]:
    """While a profile runs it may import the files next to it, and find itself (data classes do).

    A file there with the name of a module of Python, such as `profile.py`, does not take that module's place:
    libraries that the profile imports would find it.
    """
    for name in {file.stem for file in directory.glob("*.py")} & sys.stdlib_module_names - _JOKES:
        # A system may lack a part of the library, such as tkinter.
        with suppress(ImportError):
            importlib.import_module(name)
    sys.path.insert(0, str(directory))
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        sys.path.remove(str(directory))
        del sys.modules[module.__name__]


@contextmanager
def _located(path: Path) -> Iterator[None]:
    """Say in which line of the profile something went wrong."""
    try:
        yield
    except STLProfileError:
        raise
    except (Exception, SystemExit) as error:
        lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f", line {lines[-1].lineno}: {lines[-1].line}" if lines else ""
        if isinstance(error, SystemExit):
            raise TunableError(f"profile {path}{where}: it ended itself; are its tunables right?") from error
        what = str(error) if isinstance(error, STLError) else f"{type(error).__name__}: {error}"
        raise STLProfileError(f"profile {path}{where}: {what}") from error
