"""The profiles that come with the package: finding one by its name, and what each says of itself.

Nothing of a profile is run to describe it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from allosaur._files import no_file
from allosaur.cli._errors import bad_input
from allosaur.cli._parser import nearest

FOLDER = Path(__file__).resolve().parents[1] / "profiles"
KINDS = ("stateless", "stateful", "emulation")
"""What profiles are for: streams, flows, emulated clients. Those of all but the first have a folder each."""
_FOLDERS = KINDS[1:]
EMULATION = "emu:"
"""What may stand before the name of a profile of emulated clients, and its short name: `emu:dhcp`."""
_ENDINGS = (".py", ".json", ".yaml", ".yml", ".pcap", ".pcapng", ".cap", ".erf")
"""What files of profiles end in."""
_METHODS = ("get_streams", "get_profile")
_CONTEXT = ("self", "direction", "port_id", "tunables")
"""Parameters that are no tunables."""
_DESCRIBED = re.compile(r"(\w+) \(((?:[^()]|\([^()]*\))*)\)")
"""A tunable in the docstring of a profile: `size (frame size in bytes, with FCS)`."""


@dataclass(frozen=True)
class Tunable:
    """A value that `-t` gives to a profile."""

    name: str
    default: Any
    description: str

    def __str__(self) -> str:
        return f"{self.name}={self.default}"


@dataclass(frozen=True)
class Shipped:
    """What a profile says of itself."""

    name: str
    path: Path
    kind: str
    """One of `KINDS`."""
    summary: str
    text: str
    tunables: tuple[Tunable, ...]


@cache
def files() -> dict[str, Path]:
    """Return the profiles that come with the package, by name."""
    folders = [FOLDER, *(FOLDER / name for name in _FOLDERS)]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.py"))}


def located(text: str) -> str:
    """Return the file that PROFILE means: a file if there is one, else the profile of that name.

    What is neither comes back as it is.
    """
    if Path(text).exists():
        return text
    if text.startswith(EMULATION):
        return _of_emulation(text.removeprefix(EMULATION)) or text
    found = files().get(_name(text) or "")
    return text if found is None else str(found)


def _of_emulation(text: str) -> str | None:
    """Return the file of emulated clients that a short name means: `dhcp` is `dhcp_clients`."""
    if Path(text).exists():
        return text
    stems = sorted(path.stem for path in (FOLDER / "emulation").glob("*.py"))
    words = (text, *(f"{text}_{what}" for what in ("clients", "hosts")))
    found = next((word for word in words if word in stems), None)
    found = found or next((stem for stem in stems if stem.partition("_")[0] == text), None)
    return None if found is None else str(FOLDER / "emulation" / f"{found}.py")


def check(path: Path) -> None:
    """Refuse a profile that is not there, or is no file. Raises :class:`CommandError`."""
    why = no_file(path)
    if why is None:
        return
    if path.is_dir():
        raise bad_input(f"profile {path}: is a folder, not a profile; give a .py, .json, .yaml or .pcap file")
    if path.exists():
        raise bad_input(f"profile {path}: {why}")
    raise bad_input(
        f"profile {path}: {why}, and no profile of that name comes with allosaur{_meant(path)} "
        "(`allosaur profiles` lists them)"
    )


def _meant(path: Path) -> str:
    """Return the profile that was meant, as a question: the file without its ending, or one like it."""
    beside = [Path(f"{path}{ending}") for ending in _ENDINGS]
    found = next((one for one in beside if one.is_file()), None)
    if found is not None:
        return f"; did you mean {found}?"
    shipped = nearest(path.stem, files())
    if shipped or not path.parent.is_dir():
        return shipped
    names = {
        one.name: str(path.with_name(one.name)) for one in path.parent.iterdir() if one.suffix in _ENDINGS
    }
    return nearest(path.name, names) or nearest(f"{path.name}.py", names)


def described(path: Path) -> Shipped:
    """Read what a profile says of itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    text = ast.get_docstring(tree) or ""
    summary = " ".join(text.split("\n\n", 1)[0].split())
    descriptions = dict(_DESCRIBED.findall(" ".join(text.partition("Tunables:")[2].split())))
    defaults = _defaults(tree)
    tunables = tuple(Tunable(name, defaults[name], descriptions.get(name, "")) for name in defaults)
    kind = path.parent.name if path.parent.name in _FOLDERS else KINDS[0]
    return Shipped(path.stem, path, kind, summary, text, tunables)


def _name(text: str) -> str | None:
    """Return the name in `imix`, `imix.py` or `stateful/http`; a path to anywhere else is none."""
    name = text.removesuffix(".py")
    for folder in _FOLDERS:
        name = name.removeprefix(f"{folder}/")
    return None if "/" in name else name


def _defaults(tree: ast.Module) -> dict[str, Any]:
    """Return the tunables and their defaults: those of the method, or of the parser that it makes."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    method = next((function for function in functions if function.name in _METHODS), None)
    if method is None:
        return {}
    plain = dict(zip(reversed(method.args.args), reversed(method.args.defaults), strict=False))
    found = {
        one.arg: _value(plain[one]) for one in method.args.args if one in plain and one.arg not in _CONTEXT
    }
    calls = [node for node in ast.walk(method) if isinstance(node, ast.Call)]
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            name = _value(call.args[0]).removeprefix("--").replace("-", "_")
            found[name] = next((_value(one.value) for one in call.keywords if one.arg == "default"), None)
    return found


def _value(node: ast.expr) -> Any:
    """Return a constant, or the text of an expression such as `32 * 1024`."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
