"""Which kind of traffic a profile is for: streams, flows, or emulated clients."""

from __future__ import annotations

import ast
import contextlib
import json
import sys
from pathlib import Path

from allosaur.cli._errors import bad_input

_STATEFUL_KEYS = {"templates", "program_list", "ip_gen_dist_list"}
_NO_TRAFFIC = {
    "get_topo": (
        "a topology (virtual interfaces and gateways of clients), not traffic: "
        "load it from a script with ASTFClient.topo_load(), beside a profile"
    ),
    "get_tpg_conf": "a list of tags for tagged packet groups, which are not in Allosaur yet",
}
"""The function of a file that is no profile, and what the file is."""
_EMULATION, _THEIR_EMULATION = "EMUProfile", "trex.emu"
"""What every profile of emulated clients makes, and where those for TRex have it from."""
_TOPOLOGY_KEYS = {"vifs", "gws"}
_METHODS = {"get_profile": True, "get_streams": False}
"""The method of what register() returns, and whether it makes a stateful profile."""


def is_stateful(path: Path) -> bool:
    """Say whether a file has flows. What cannot be read is not: whoever loads it says why.

    Raises :class:`CommandError` for a file of TRex's that is no profile at all, and for emulated clients.
    """
    if is_emulation(path):
        raise bad_input(
            f"profile {path}: emulates clients, and sends no traffic: `allosaur emu load` is for it"
        )
    if path.suffix not in (".py", ".json", ".yaml", ".yml") or not path.is_file():
        return False
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    if path.suffix in (".yaml", ".yml"):
        _refuse_topology(path, _yaml(text))
        return False
    return _json_is_stateful(path, text) if path.suffix == ".json" else _python_is_stateful(path, text)


def is_emulation(path: Path) -> bool:
    """Say whether a file has emulated clients. What cannot be read has none: whoever loads it says why."""
    if path.suffix != ".py" or not path.is_file():
        return False
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return False
    return any(_is_of_emulation(node) for node in ast.walk(tree))


def _is_of_emulation(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").startswith(_THEIR_EMULATION)
    return isinstance(node, ast.Name) and node.id == _EMULATION


def _yaml(text: str) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _refuse_topology(path: Path, value: object) -> None:
    if isinstance(value, dict) and value.keys() >= _TOPOLOGY_KEYS:
        raise bad_input(f"{path} is {_NO_TRAFFIC['get_topo']}")


def _json_is_stateful(path: Path, text: str) -> bool:
    """A stateful profile is an object of tables; streams are a list."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    _refuse_topology(path, value)
    return isinstance(value, dict) and bool(_STATEFUL_KEYS & value.keys())


def _python_is_stateful(path: Path, text: str) -> bool:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for name, what in _NO_TRAFFIC.items():
        if name in defined and not defined & _METHODS.keys():
            raise bad_input(f"{path} is {what}")
    kinds = {kind for name, kind in _METHODS.items() if name in defined}
    # A profile whose class is in another file, or that has both methods, must be asked itself.
    return kinds.pop() if len(kinds) == 1 else _asked(path)


def _asked(path: Path) -> bool:
    from allosaur._errors import STLError
    from allosaur.streams._loader import located_module

    try:
        with contextlib.redirect_stdout(sys.stderr), located_module(path) as module:
            registered = module.register()
            return not hasattr(registered, "get_streams") and hasattr(registered, "get_profile")
    except STLError:
        return False
