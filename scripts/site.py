"""Hooks of mkdocs: pages and schemas outside of docs/ become part of the site, and links follow them.

A link to any other file of the source has no place on the site: its text stays, without the link.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
OUTSIDE = {
    "project/architecture.md": "ARCHITECTURE.md",
    "project/contributing.md": "CONTRIBUTING.md",
    "project/changes.md": "CHANGELOG.md",
    "project/benchmarks.md": "bench/README.md",
}
"""The site's name of a page, and the file that it is."""
SCHEMAS = {
    f"reference/schemas/{path.name}": path.relative_to(ROOT).as_posix()
    for path in sorted((ROOT / "python" / "allosaur" / "schemas").glob("*.json"))
}
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```.*?^```)", re.DOTALL | re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add what lies outside."""
    for name, path in {**OUTSIDE, **SCHEMAS}.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Have each link of a page lead to where it is on the site."""
    name = page.file.src_uri
    source = ROOT / OUTSIDE[name] if name in OUTSIDE else DOCS / name
    parts = _FENCE.split(markdown)
    # Every other part is a block of code, which stays as it is.
    parts[::2] = [_LINK.sub(lambda found: _link(found, source, name), part) for part in parts[::2]]
    return "".join(parts)


def _link(found: re.Match[str], source: Path, name: str) -> str:
    target = found["target"]
    if "://" in target or target.startswith("mailto:"):
        return found[0]
    # By its name only: a link to what is not there must stay one, for mkdocs to say so.
    path = Path(os.path.normpath(source.parent / target))
    outside = {ROOT / path: name for name, path in {**OUTSIDE, **SCHEMAS}.items()}
    if path in outside:
        place = outside[path]
    elif path.is_relative_to(DOCS):
        place = path.relative_to(DOCS).as_posix()
    else:
        return found["text"]
    return f"[{found['text']}]({posixpath.relpath(place, posixpath.dirname(name))}{found['anchor'] or ''})"
