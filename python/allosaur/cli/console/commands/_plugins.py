"""`plugins`: further commands, from files of one's own."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from allosaur.cli._answer import Answer
from allosaur.cli._errors import bad_input
from allosaur.cli.console import _plugins
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session

_OWN = "plugin_value_"
"""What the values of a plug-in's arguments begin with, so that they are none of the console's."""


class Plugins(ConsoleCommand):
    """`plugins`. It has the words of those that are loaded."""

    name = "plugins"
    summary = "load further commands from files, as plug-ins of TRex's console, and use them"
    group = "Console"
    example = "plugins show"
    needs_server = False

    def __init__(self, loaded: Mapping[str, _plugins.PlugIn] | None = None) -> None:
        self._loaded = {} if loaded is None else loaded

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        words = parser.add_subparsers(dest="action", metavar="ACTION")
        words.add_parser("show", help="list those that can be loaded, and those that are")
        load = words.add_parser("load", help="load one, or load it again")
        load.add_argument("plugin", metavar="PLUGIN", help="its name, NAME of plugin_NAME.py, or its file")
        unload = words.add_parser("unload", help="unload one, or all")
        unload.add_argument("plugin", nargs="?", metavar="PLUGIN", help="its name")
        for one in self._loaded.values():
            own = words.add_parser(one.name, help=one.description, description=one.description)
            inner = own.add_subparsers(dest="plugin_action", metavar="COMMAND", required=True)
            for action in one.actions.values():
                _add(inner.add_parser(action.name, help=action.summary, description=action.summary), action)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        if options.action in (None, "show"):
            return _shown(session)
        if options.action == "load":
            return _load(session, options.plugin)
        if options.action == "unload":
            return _unload(session, options.plugin)
        plugin = session.plugins[options.action]
        action = plugin.actions[options.plugin_action]
        values = {name: getattr(options, _OWN + name) for name in action.arguments}
        with _printing(session):
            _plugins.call(plugin, action, session.client, values)
        return Answer("", {"plugin": plugin.name, "action": action.name})


def _add(parser: argparse.ArgumentParser, action: _plugins.Action) -> None:
    """Give a parser the arguments of an action."""
    for dest, (names, options) in action.arguments.items():
        own: dict[str, Any] = {**options, "dest": _OWN + dest}
        if not any(name.startswith("-") for name in names):
            names = ()
            if "choices" not in own:
                own.setdefault("metavar", dest)
        elif "choices" not in own and own.get("action", "store") in ("store", "append"):
            own.setdefault("metavar", dest.upper())
        parser.add_argument(*names, **own)


def _shown(session: Session) -> Answer:
    known = dict(sorted({**dict.fromkeys(_plugins.found()), **session.plugins}.items()))
    rows = [(name, "yes" if one else "no", one.description if one else "") for name, one in known.items()]
    width = max([6, *(len(name) for name, _, _ in rows)])
    lines = [f"{name:<{width}}  {is_loaded:<6}  {text}".rstrip() for name, is_loaded, text in rows]
    text = "\n".join([f"{'plugin':<{width}}  loaded", *lines])
    if not rows:
        places = " and ".join(map(str, _plugins.folders()))
        text = f"There are no files plugin_NAME.py in {places}."
    return Answer(text, {"plugins": {name: one is not None for name, one in known.items()}})


def _load(session: Session, word: str) -> Answer:
    path = _plugins.path_of(word)
    with _printing(session):
        before = session.plugins.pop(path.stem.removeprefix("plugin_"), None)
        if before is not None:
            before.unload()
        plugin = _plugins.load(path, session.client, session)
    session.plugins[plugin.name] = plugin
    return done(f"Loading plugin: {plugin.name}", plugin=plugin.name, actions=sorted(plugin.actions))


def _unload(session: Session, name: str | None) -> Answer:
    if name is not None and name not in session.plugins:
        loaded = ", ".join(session.plugins) or "none"
        raise bad_input(f"plugin '{name}' is not loaded; loaded: {loaded}")
    names = list(session.plugins) if name is None else [name]
    for one in names:
        with _printing(session):
            session.plugins.pop(one).unload()
    return done(f"Unloading plugins: {', '.join(names) or 'none'}", plugins=names)


@contextlib.contextmanager
def _printing(session: Session) -> Iterator[None]:
    """Let a plug-in print what it likes, but not between objects of JSON."""
    with contextlib.ExitStack() as stack:
        if session.settings.json:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield
