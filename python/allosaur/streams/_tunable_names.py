"""The names of tunables: which a profile reads, and which was meant by a misspelt one."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ._profile_warning import ProfileWarning


class UnreadTunableWarning(ProfileWarning):
    """A tunable was given that the profile never reads."""


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """``; did you mean NAME?`` where a name is near, else nothing."""
    near = difflib.get_close_matches(given, list(names), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def warn_of_unread(
    path: Path, function: Callable[..., Any], given: Iterable[str], known: Sequence[str]
) -> None:
    """Warn of tunables that go into the ``**kwargs`` of a profile's function and are not read there."""
    read = _read_of_keywords(function)
    if read is None:
        return
    names = [*known, *sorted(read - set(known))]
    for name in given:
        if name not in names:
            warnings.warn(
                f"profile {path}: it never reads the tunable '{name}', "
                f"its tunables are: {', '.join(names) or 'none'}{did_you_mean(name, names)}",
                UnreadTunableWarning,
                stacklevel=2,
            )


def _read_of_keywords(function: Callable[..., Any]) -> set[str] | None:
    """The names that a function reads of its ``**kwargs``; None when its source does not tell."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef) or definition.args.kwarg is None:
        return None
    keywords = definition.args.kwarg.arg
    read: set[str] = set()
    known_uses = 0
    for node in ast.walk(definition):
        name = _name_read(node, keywords)
        if name is not None:
            read.add(name)
            known_uses += 1
    uses = sum(isinstance(node, ast.Name) and node.id == keywords for node in ast.walk(definition))
    # Passed on as a whole, or read by names that are computed: then any may be read.
    # Through `tunables`, the list for argparse, all come too.
    return read if uses == known_uses and "tunables" not in read else None


def _name_read(node: ast.AST, keywords: str) -> str | None:
    """The name that ``kwargs["name"]``, ``kwargs.get("name")`` or ``"name" in kwargs`` reads."""

    def is_keywords(one: ast.AST) -> bool:
        return isinstance(one, ast.Name) and one.id == keywords

    key: ast.AST | None = None
    if isinstance(node, ast.Subscript) and is_keywords(node.value):
        key = node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_keywords(node.func.value):
        key = node.args[0] if node.args and node.func.attr in ("get", "pop", "setdefault") else None
    elif isinstance(node, ast.Compare) and len(node.comparators) == 1 and is_keywords(node.comparators[0]):
        key = node.left
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
