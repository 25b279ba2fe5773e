"""Rules for the Python code, read from its syntax: imports, sizes, names. Each rule is tried on examples.

The sizes and the words are those of the Rust code, whose rules are in crates/testkit/tests/tidy.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("python", "tests", "bench", "scripts")
VOCABULARY = ROOT / "crates" / "testkit" / "tests" / "tidy" / "vocabulary.rs"

FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
#: What may be larger: `path` or `path::function`, the lines that it has, and why. The list only shrinks.
LARGER: dict[str, tuple[int, str]] = {}

#: Which packages and modules a package may import beside its own modules: only those that stand above it.
#: A module belongs to the longest name here that it begins with.
MAY_IMPORT: dict[str, set[str]] = {
    "allosaur._errors": set(),
    "allosaur.stats": set(),
    "allosaur.metrics": set(),
    "allosaur._not_here": {"allosaur._errors"},
    "allosaur._console_lines": set(),  # finds the console by its name
    "allosaur._files": set(),
    "allosaur.rpc": {"allosaur._errors"},
    "allosaur.packets": {"allosaur._errors"},
    "allosaur.streams": {"allosaur._errors", "allosaur.packets"},
    "allosaur.hlt": {"allosaur._errors", "allosaur.packets", "allosaur.streams"},
    "allosaur.stateful": {"allosaur._errors", "allosaur._files", "allosaur.packets", "allosaur.streams"},
    "allosaur.services": {"allosaur._errors", "allosaur.packets"},
    "allosaur.client": {
        *("allosaur._errors", "allosaur._not_here", "allosaur._console_lines"),
        *("allosaur.stats", "allosaur.metrics", "allosaur.rpc"),
        *("allosaur.packets", "allosaur.streams", "allosaur.services"),
    },
    "allosaur.stateful.client": {
        *("allosaur._errors", "allosaur._not_here", "allosaur._console_lines"),
        *("allosaur.stats", "allosaur.rpc"),
        *("allosaur.services", "allosaur.client", "allosaur.stateful"),
    },
    "allosaur.emulation": {
        *("allosaur._errors", "allosaur._not_here", "allosaur._console_lines"),
        *("allosaur.rpc", "allosaur.streams"),
    },
    "allosaur.bird": {"allosaur._errors", "allosaur.rpc"},
    "allosaur": set(),
    "allosaur.server": {"allosaur._errors", "allosaur.client", "allosaur.stateful.client"},
    "allosaur.testing": {"allosaur._errors", "allosaur.rpc", "allosaur.client", "allosaur.emulation"},
    "allosaur.compat": {
        *("allosaur._errors", "allosaur._files", "allosaur.client", "allosaur.services"),
        "allosaur.stateful",
    },
    "allosaur.api": {"allosaur", "allosaur.packets", "allosaur.compat"},
    "allosaur._from_api": {"allosaur.api", "allosaur.compat"},
    "allosaur.profiles": {"allosaur", "allosaur.api"},
    "allosaur.report": {"allosaur"},
    "allosaur.search": set(),
    "allosaur.cli": {
        *("allosaur", "allosaur._errors", "allosaur._files", "allosaur.server", "allosaur.packets"),
        *("allosaur.streams", "allosaur.metrics"),
    },
    "allosaur.cli.emulation": {"allosaur", "allosaur.rpc", "allosaur.server", "allosaur.cli"},
    "allosaur.cli.nodes": {"allosaur", "allosaur.cli"},
    "allosaur.cli.bird": {"allosaur.bird", "allosaur.cli"},
    "allosaur.cli.routes": {"allosaur", "allosaur.cli", "allosaur.cli.nodes"},
    "allosaur.run": {
        *(
            "allosaur",
            "allosaur.metrics",
            "allosaur._files",
            "allosaur.client",
            "allosaur.server",
            "allosaur.report",
        ),
        *("allosaur.cli", "allosaur.cli.emulation"),
    },
    "allosaur.cli.streams": {
        *("allosaur", "allosaur._files", "allosaur.server", "allosaur.report", "allosaur.cli"),
        "allosaur.run",
    },
    "allosaur.cli.flows": {"allosaur", "allosaur.server", "allosaur.report", "allosaur.cli", "allosaur.run"},
    "allosaur.cli.demo": {
        *("allosaur", "allosaur.api", "allosaur.server", "allosaur.report", "allosaur.cli", "allosaur.run"),
    },
    "allosaur.cli.plan": {
        "allosaur",
        "allosaur.server",
        "allosaur.cli",
        "allosaur.cli.flows",
        "allosaur.run",
    },
    "allosaur.cli.doctor": {"allosaur", "allosaur.server", "allosaur.cli"},
    "allosaur.cli.ndr": {
        *("allosaur", "allosaur._errors", "allosaur._files", "allosaur.server", "allosaur.report"),
        *("allosaur.search", "allosaur.streams"),
        *("allosaur.cli", "allosaur.run"),
    },
    "allosaur.cli.compare": {"allosaur.cli", "allosaur.run"},
    "allosaur.cli.top": {"allosaur", "allosaur.metrics", "allosaur.report", "allosaur.cli"},
    "allosaur.cli.metrics": {"allosaur.cli"},
    "allosaur.cli.traffic": {
        *("allosaur", "allosaur.report"),
        *("allosaur.cli", "allosaur.cli.streams", "allosaur.cli.flows", "allosaur.cli.emulation"),
        "allosaur.run",
    },
    "allosaur.cli.console": {
        *("allosaur", "allosaur._errors", "allosaur._files", "allosaur.api", "allosaur.compat"),
        *("allosaur.emulation", "allosaur.streams"),
        *("allosaur.cli", "allosaur.cli.top", "allosaur.cli.emulation", "allosaur.cli.nodes"),
        *("allosaur.cli.bird", "allosaur.bird"),
    },
    "allosaur.cli.commands": {
        *("allosaur", "allosaur.packets", "allosaur.server", "allosaur.cli"),
        *("allosaur.cli.streams", "allosaur.cli.flows", "allosaur.cli.demo", "allosaur.cli.console"),
        *("allosaur.cli.plan", "allosaur.cli.doctor", "allosaur.cli.ndr", "allosaur.cli.compare"),
        *("allosaur.cli.top", "allosaur.cli.nodes", "allosaur.cli.bird", "allosaur.bird"),
        "allosaur.cli.routes",
        *("allosaur.cli.emulation", "allosaur.cli.metrics", "allosaur.cli.traffic", "allosaur.run"),
    },
    "allosaur.cli._main": {"allosaur.cli", "allosaur.cli.commands"},
    "allosaur.cli.trex": {
        *("allosaur._files", "allosaur.cli", "allosaur.cli.console", "allosaur.run"),
        "allosaur.cli._main",
    },
    "trex": {
        *("allosaur", "allosaur._errors", "allosaur._from_api", "allosaur.api", "allosaur.compat"),
        *("allosaur.packets", "allosaur.hlt", "allosaur.stateful", "allosaur.services"),
        *("allosaur.client", "allosaur.stateful.client", "allosaur.emulation", "allosaur.bird"),
    },
    "trex_stl_lib": {
        *("allosaur", "allosaur._errors", "allosaur._from_api", "allosaur.api", "allosaur.compat"),
        *("allosaur.hlt", "trex"),
    },
}


@dataclass(frozen=True)
class Source:
    """A file of Python: its path from the root, and its text."""

    path: str
    text: str

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")

    @property
    def module(self) -> str:
        """The name by which it is imported, if it is in `python`."""
        parts = Path(self.path).with_suffix("").parts[1:]
        return ".".join(parts[:-1] if self.is_package else parts)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)


@cache
def sources() -> list[Source]:
    """Every file of Python in the project."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(found) > 300, "where is the code?"
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in found]


def package() -> list[Source]:
    """The modules that are installed."""
    return [source for source in sources() if source.path.startswith("python/")]


def imports(source: Source, known: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The modules among ``known`` that a file imports, wherever in it, with the line."""
    known = set(known)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = source.module.split(".") if source.is_package else source.module.split(".")[:-1]
            start = base[: len(base) - node.level + 1] if node.level else []
            parent = ".".join([*start, *([node.module] if node.module else [])])
            inner = [f"{parent}.{alias.name}" for alias in node.names]
            names = [name if name in known else parent for name in inner]
        else:
            continue
        yield from ((name, node.lineno) for name in names if name in known)


def circles(files: list[Source]) -> list[str]:
    """Modules that import each other, over any number of others. A package's ``__init__`` is a parent."""
    known = {source.module for source in files}
    parents = {source.module for source in files if source.is_package}
    graph = {
        source.module: sorted({name for name, _ in imports(source, known)} - parents - {source.module})
        for source in files
        if not source.is_package
    }
    return [f"{' -> '.join(circle)}: a circle of imports" for circle in _components(graph)]


def _components(graph: Mapping[str, list[str]]) -> list[list[str]]:
    """Sets of more than one node that reach each other (Tarjan)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = lowest[node] = len(index)
        stack.append(node)
        for other in graph.get(node, []):
            if other not in index:
                visit(other)
            if other in stack:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in index:
            visit(node)
    return found


def wrong_ways(files: list[Source], may_import: Mapping[str, set[str]]) -> list[str]:
    """Imports that the table of packages does not allow. A package's ``__init__`` hands out what is below."""
    known = {source.module for source in files}

    def home(module: str) -> str:
        parts = module.split(".")
        names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        return next((name for name in names if name in may_import), "")

    violations = []
    for source in files:
        if source.path.endswith(("/__init__.py", "/__main__.py")):
            continue
        own = home(source.module)
        if not own:
            violations.append(f"{source.path}: its package is not in the table of imports")
            continue
        for name, line in imports(source, known):
            other = home(name)
            if other != own and other not in may_import[own]:
                violations.append(f"{source.path}:{line}: {own} may not import {other}")
    return violations


def too_large(files: list[Source], larger: Mapping[str, tuple[int, str]]) -> list[str]:
    """Files and functions past their line, and what the list says wrongly."""
    sizes: dict[str, tuple[int, int]] = {}
    for source in files:
        sizes[source.path] = (source.text.count("\n"), FILE_LINES_MAX)
        for node in ast.walk(source.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = f"{source.path}::{node.name}"
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                sizes[name] = max(sizes.get(name, (0, 0)), (lines, FUNCTION_LINES_MAX))
    violations = [
        f"{name}: {lines} lines; the most is {most}"
        for name, (lines, most) in sizes.items()
        if lines > most and name not in larger
    ]
    for name, (allowed, reason) in larger.items():
        lines, most = sizes.get(name, (0, 0))
        if lines != allowed or lines <= most or not reason:
            violations.append(f"{name}: has {lines} lines, the list says {allowed} because of '{reason}'")
    return violations


def private_words() -> set[str]:
    """The words that may not name a module or a class: one list, that of the Rust code."""
    found = re.search(r"const PRIVATE: \[&str; (\d+)\] = \[(.*?)\];", VOCABULARY.read_text(), re.S)
    assert found, f"no list of words in {VOCABULARY}"
    words = set(re.findall(r'"(\w+)"', found[2]))
    assert len(words) == int(found[1])
    return words


def private_names(files: list[Source], words: set[str]) -> list[str]:
    """Modules and classes with a private word in their names."""
    violations = []
    for source in files:
        last = source.module.split(".")[-1]
        classes = [node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
        for name, line in [(last, 1), *((node.name, node.lineno) for node in classes)]:
            for word in sorted(words & _parts(name)):
                violations.append(f"{source.path}:{line}: `{name}`: '{word}' is a private word")
    return violations


def _parts(name: str) -> set[str]:
    """The words of a name: `FlowOrder` and `flow_order` have two."""
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)}


def test_no_modules_import_each_other() -> None:
    assert circles(package()) == []


def test_imports_go_one_way() -> None:
    above: set[str] = set()
    for name, allowed in MAY_IMPORT.items():
        assert allowed <= above, f"{name} may import only what stands above it: {allowed - above}"
        above.add(name)
    assert wrong_ways(package(), MAY_IMPORT) == []


def test_files_and_functions_stay_small() -> None:
    assert too_large(sources(), LARGER) == []


def test_modules_and_classes_speak_the_fields_language() -> None:
    assert private_names(package(), private_words()) == []


def test_a_circle_is_seen_wherever_the_import_stands() -> None:
    ends = [Source("python/p/__init__.py", "from .a import A"), Source("python/p/c.py", "from .a import A")]
    for text in ("from . import c", "import p.c", "def f():\n    from .c import C"):
        (found,) = circles([*ends, Source("python/p/a.py", text)])
        assert found.startswith("p.a -> p.c:")
    (found,) = circles(
        [*ends, Source("python/p/a.py", "from p.b import B"), Source("python/p/b.py", "import p.c")]
    )
    assert found.startswith("p.a -> p.b -> p.c:")
    assert circles([*ends, Source("python/p/a.py", "import p\nfrom . import X")]) == [], "a parent is free"


def test_an_import_against_the_table_is_seen() -> None:
    table: dict[str, set[str]] = {"p.low": set(), "p": {"p.low"}}
    low, top = (
        Source("python/p/low/_x.py", "from .._y import Y"),
        Source("python/p/_y.py", "from .low._x import X"),
    )
    assert wrong_ways([low, top], table) == ["python/p/low/_x.py:1: p.low may not import p"]
    assert wrong_ways([Source("python/p/low/_x.py", "import re"), top], table) == []
    assert wrong_ways([Source("python/q.py", "")], table) == [
        "python/q.py: its package is not in the table of imports"
    ]


def test_what_is_too_large_is_seen_and_the_list_only_shrinks() -> None:
    def function(lines: int) -> Source:
        return Source("a.py", "class A:\n    def f():\n" + "        pass\n" * (lines - 1))

    assert too_large([function(FUNCTION_LINES_MAX)], {}) == []
    assert too_large([function(FUNCTION_LINES_MAX + 1)], {}) == ["a.py::f: 71 lines; the most is 70"]
    assert too_large([function(72)], {"a.py::f": (72, "a table")}) == []
    for listed in ((73, "a table"), (72, "")):
        assert len(too_large([function(72)], {"a.py::f": listed})) == 1
    assert len(too_large([function(9)], {"a.py::f": (9, "a table")})) == 1
    assert too_large([Source("a.py", "\n" * 801)], {}) == ["a.py: 801 lines; the most is 800"]


def test_a_private_word_is_seen() -> None:
    words = {"outlet", "news"}
    assert len(private_names([Source("python/p/_news.py", "class TxOutlet: ...")], words)) == 2
    assert private_names([Source("python/p/_newsgroup.py", "class Outlets: ...")], words) == []
    assert {"outlet", "room"} <= private_words()
