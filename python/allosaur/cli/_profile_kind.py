"""Which kind of traffic a profile is for: streams, or conversations."""

from __future__ import annotations

import ast
import contextlib
import json
import sys
from pathlib import Path

_STATEFUL_KEYS = {"templates", "program_list", "ip_gen_dist_list"}
_METHODS = {"get_profile": True, "get_streams": False}
"""The method of what register() returns, and whether it makes a stateful profile."""


def is_stateful(path: Path) -> bool:
    """Say whether a file has conversations. What cannot be read is not: whoever loads it says why."""
    if path.suffix not in (".py", ".json") or not path.is_file():
        return False
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return _json_is_stateful(text) if path.suffix == ".json" else _python_is_stateful(path, text)


def _json_is_stateful(text: str) -> bool:
    """A stateful profile is an object of tables; streams are a list."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and bool(_STATEFUL_KEYS & value.keys())


def _python_is_stateful(path: Path, text: str) -> bool:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    kinds = {kind for name, kind in _METHODS.items() if name in defined}
    # A profile whose class is in another file, or that has both methods, must be asked itself.
    return kinds.pop() if len(kinds) == 1 else _asked(path)


def _asked(path: Path) -> bool:
    from allosaur._errors import STLError
    from allosaur._loader import located_module

    try:
        with contextlib.redirect_stdout(sys.stderr), located_module(path) as module:
            registered = module.register()
            return not hasattr(registered, "get_streams") and hasattr(registered, "get_profile")
    except STLError:
        return False
