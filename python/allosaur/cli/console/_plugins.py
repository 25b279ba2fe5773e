"""Plug-ins of the console, as TRex's has them: found, loaded, and taken apart into commands."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allosaur._errors import STLError
from allosaur._files import no_file
from allosaur.cli._errors import bad_input, brief
from allosaur.compat._plugin import ConsolePlugin

RESERVED = ("show", "load", "unload")
_PREFIX = "plugin_"


@dataclass(frozen=True)
class Action:
    """What a plug-in does at a word: a method `do_WORD`."""

    name: str
    summary: str
    arguments: dict[str, tuple[tuple[str, ...], dict[str, Any]]]
    """By the name that the method takes it by: what argparse is told of it."""
    method: Callable[..., Any]


@dataclass(frozen=True)
class PlugIn:
    """A plug-in that is loaded."""

    name: str
    path: Path
    plugin: ConsolePlugin
    description: str
    actions: dict[str, Action]

    def unload(self) -> None:
        """Have it clean up. Raises :class:`CommandError`."""
        with _told(self.path, "plugin_unload"):
            self.plugin.plugin_unload()


def folders() -> list[Path]:
    """Return where plug-ins are looked for by their names, the first first."""
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return [Path.cwd(), Path(config).expanduser() / "allosaur" / "plugins"]


def found() -> dict[str, Path]:
    """Return the plug-ins that may be loaded by name."""
    paths = [path for folder in reversed(folders()) for path in sorted(folder.glob(f"{_PREFIX}*.py"))]
    return {path.stem.removeprefix(_PREFIX): path for path in paths if path.stem != _PREFIX}


def path_of(word: str) -> Path:
    """Return the file of a plug-in, by its name or its path. Raises :class:`CommandError`."""
    if "/" in word or word.endswith(".py"):
        return Path(word).expanduser()
    path = found().get(word)
    if path is None:
        hint = "; emulated clients are the commands emu_* of a console with --emu" if word == "emu" else ""
        places = " nor in ".join(map(str, folders()))
        raise bad_input(f"there is no {_PREFIX}{word}.py in {places}; give its path{hint}")
    return path


def load(path: Path, client: Any, console: Any) -> PlugIn:
    """Load a plug-in. Raises :class:`CommandError` that says what is wrong with it."""
    from allosaur.streams._loader import located_module

    name = path.stem.removeprefix(_PREFIX)
    if name in RESERVED:
        raise bad_input(f"{path}: {', '.join(RESERVED)} are words of `plugins`: give the file another name")
    if why := no_file(path):
        raise bad_input(f"{path}: {why}")
    try:
        with located_module(path) as module:
            kinds = [kind for kind in vars(module).values() if _is_plugin(kind)]
    except STLError as error:
        raise bad_input(brief(error).replace("profile", "plug-in", 1)) from error
    if len(kinds) != 1:
        raise bad_input(f"{path}: it must have one class that inherits ConsolePlugin, not {len(kinds)}")
    with _told(path, "it cannot be loaded"):
        plugin: ConsolePlugin = kinds[0]()
        plugin.trex_client = client
        plugin.set_plugin_console(console)
        plugin.plugin_load()
        description = str(plugin.plugin_description())
    return PlugIn(name, path, plugin, description, _actions(path, plugin))


def call(plugin: PlugIn, action: Action, client: Any, values: dict[str, Any]) -> None:
    """Do what a plug-in does at a word. Raises :class:`CommandError`, and what the client raises."""
    plugin.plugin.trex_client = client
    with _told(plugin.path, action.name):
        action.method(**values)


def _is_plugin(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, ConsolePlugin) and kind is not ConsolePlugin


def _actions(path: Path, plugin: ConsolePlugin) -> dict[str, Action]:
    declared = plugin.plugin_arguments()
    actions = {}
    for attribute in dir(plugin):
        method = getattr(plugin, attribute)
        if not attribute.startswith("do_") or not inspect.ismethod(method):
            continue
        summary = inspect.getdoc(method)
        if not summary:
            raise bad_input(f"{path}: {attribute}() has no docstring, which is its help")
        names = list(inspect.signature(method).parameters)
        missing = [name for name in names if name not in declared]
        if missing:
            raise bad_input(f"{path}: {attribute}() takes '{missing[0]}': declare it by add_argument()")
        arguments = {name: declared[name] for name in names}
        name = attribute.removeprefix("do_")
        actions[name] = Action(name, summary, arguments, method)
    return actions


@contextlib.contextmanager
def _told(path: Path, doing: str) -> Iterator[None]:
    """Let errors of a plug-in say whose they are; those of the client speak for themselves."""
    try:
        yield
    except STLError:
        raise
    except Exception as error:
        line = next((at.tb_lineno for at in _frames(error) if _file(at) == str(path.resolve())), None)
        where = f"{path}, line {line}" if line else str(path)
        raise bad_input(f"{where}: {doing}: {type(error).__name__}: {brief(error)}") from error


def _frames(error: BaseException) -> Iterator[Any]:
    trace = error.__traceback__ or sys.exc_info()[2]
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _file(trace: Any) -> str:
    return str(Path(trace.tb_frame.f_code.co_filename).resolve())
