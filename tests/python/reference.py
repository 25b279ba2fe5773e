"""Writes docs/reference/python.md from the package's own docstrings.

Run it after a change of the public surface: ``python tests/python/reference.py``. A test says when it is due.
"""

from __future__ import annotations

import ast
import inspect
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import allosaur
import allosaur.metrics
import allosaur.server
import allosaur.stats
import allosaur.testing

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "python.md"
HEADER = """# Python reference

Every name of the package `allosaur`: what to give it, what it gives back, and what it raises.
Times are in the units that the text says, rates in bits or packets a second, sizes in bytes.
"""
#: For who opens the file, not for who reads the page.
FOOTER = (
    "<!-- Written by `python tests/python/reference.py` from the docstrings: do not edit it by hand. -->\n"
)
SECTIONS = {
    "To talk to a server": (
        "STLClient",
        "ASTFClient",
        "PortProfileID",
        "Event",
        "CapturedPacket",
        "PacketBuffer",
    ),
    "To say what to send": (
        "STLProfile",
        "STLStream",
        "STLPktBuilder",
        "STLTX",
        "STLFlow",
        "STLStreamDstMAC",
    ),
    "To change packets on the way out": ("STLVM", "STLScVmRaw", "STLIPRange", "STLVm"),
    "To say which flows to open": (
        "ASTFProfile",
        "ASTFTemplate",
        "ASTFTCPClientTemplate",
        "ASTFTCPServerTemplate",
        "ASTFProgram",
        "ASTFCapInfo",
        "ASTFIPGen",
        "ASTFAssociation",
        "ASTFGlobalInfo",
        "ASTFT",
        "ASTFC",
        "Topo",
    ),
    "To ask and answer with packets of your own": (
        "STLService",
        "ServiceContext",
        "ServicePipe",
        "PingRecord",
        "VLAN",
    ),
    "To emulate hosts that speak their protocols": (
        "EMUClient",
        "EMUProfile",
        "EMU",
        "Mac",
        "Ipv",
        "HostPort",
    ),
    "What can go wrong": (),
}


def render() -> str:
    """The whole page."""
    lines = [HEADER]
    left = list(allosaur.__all__)
    for title, beginnings in SECTIONS.items():
        names = [name for name in left if name.startswith(beginnings)] if beginnings else list(left)
        left = [name for name in left if name not in names]
        lines.append(f"## {title}\n")
        for name in sorted(names, key=lambda name: (order(name, beginnings), name)):
            lines += describe(name, getattr(allosaur, name))
    for module in (allosaur.server, allosaur.metrics, allosaur.testing):
        lines += [f"## `{module.__name__}`\n", text(module.__doc__ or "") + "\n"]
        for name, value in vars(module).items():
            if not name.startswith("_") and getattr(value, "__module__", "").startswith(module.__name__):
                lines += describe(name, value)
    lines += [f"## `{allosaur.stats.__name__}`\n", text(allosaur.stats.__doc__ or "") + "\n"]
    return "\n".join([*lines, *statistics(), FOOTER])


def statistics() -> Iterator[str]:
    """The types of statistics, as their source has them: of dictionaries nothing is left at run time."""
    source = Path(allosaur.stats.__file__).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            fields = list(typed_fields(node, source))
            yield f"### {node.name}\n"
            yield text(ast.get_docstring(node) or "") + "\n"
            yield "| key | value |\n|---|---|"
            yield "\n".join(f"| `{key}` | `{value}` |" for key, value in fields) + "\n"


def typed_fields(node: ast.ClassDef, source: str) -> Iterator[tuple[str, str]]:
    """The keys of a dictionary and what they have: of its base, its fields, or its overloads."""
    for base in ast.parse(source).body:
        if isinstance(base, ast.ClassDef) and base.name == f"_{node.name}":
            yield from typed_fields(base, source)
    for part in node.body:
        if isinstance(part, ast.AnnAssign):
            yield ast.unparse(part.target), ast.unparse(part.annotation)
        elif isinstance(part, ast.FunctionDef) and part.decorator_list and part.returns is not None:
            key = part.args.args[1].annotation
            assert key is not None
            yield (
                re.sub(r"Literal\[(.*?)\]", r"\1", ast.unparse(key)).replace(" | ", " or "),
                ast.unparse(part.returns),
            )


def order(name: str, beginnings: tuple[str, ...]) -> int:
    """Where a name stands: as its section lists the beginnings."""
    return next((place for place, beginning in enumerate(beginnings) if name == beginning), len(beginnings))


def describe(name: str, value: Any) -> Iterator[str]:
    """One class, function or constant."""
    if not callable(value):
        yield f"### {name} = {value!r}\n"
        return
    yield f"### {name}\n"
    if typing.is_typeddict(value):
        kinds = typing.get_type_hints(value).items()
        fields = ", ".join(f"{field}: {kind.__name__}" for field, kind in kinds)
        yield f"```python\n{name}({fields})\n```\n"
        yield text(inspect.getdoc(value) or "") + "\n"
        return
    yield f"```python\n{name}{signature(value)}\n```\n"
    yield text(inspect.getdoc(value) or "") + "\n"
    if inspect.isclass(value) and not issubclass(value, Exception):
        for method, function in members(value):
            yield f"* **{method}**`{signature(function)}`\n  {summary(function)}\n"


def members(value: type) -> Iterator[tuple[str, Any]]:
    """The public methods of a class, with those it has from our other classes, in the order written."""
    seen = set()
    for part in reversed([kind for kind in value.__mro__ if kind.__module__.startswith("allosaur")]):
        for name, member in vars(part).items():
            function = getattr(member, "__func__", member)
            if not name.startswith("_") and inspect.isfunction(function) and name not in seen:
                seen.add(name)
                yield name, inspect.unwrap(getattr(value, name))


def signature(value: Any) -> str:
    """Parameters with their types and defaults."""
    parts = []
    star_seen = False
    for parameter in inspect.signature(value).parameters.values():
        if parameter.name == "self":
            continue
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.kind is parameter.KEYWORD_ONLY and not star_seen:
            star_seen = True
            parts.append("*")
        known = parameter.annotation is not parameter.empty
        shown = f"{prefix}{parameter.name}" + (f": {parameter.annotation}" if known else "")
        if parameter.default is not parameter.empty:
            shown += f" = {parameter.default!r}"
        parts.append(shown)
    returns = inspect.signature(value).return_annotation
    arrow = "" if inspect.isclass(value) or returns is inspect.Signature.empty else f" -> {returns}"
    return f"({', '.join(parts)}){arrow}"


def summary(function: Any) -> str:
    """The docstring as one paragraph."""
    return " ".join(text(inspect.getdoc(function) or "").split())


def text(docstring: str) -> str:
    """A docstring as Markdown: names in single backticks, indented examples as code."""
    return inspect.cleandoc(docstring).replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(render())
