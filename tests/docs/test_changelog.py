"""CHANGELOG.md: releases with their days, the newest first, and the version of this checkout among them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
_RELEASE = re.compile(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d{2}-\d{2})")


def headings(level: int) -> list[str]:
    """Return the headings of a level, in order."""
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    sign = "#" * level + " "
    return [line.removeprefix(sign) for line in lines if line.startswith(sign)]


def test_releases_follow_each_other() -> None:
    first, *releases = headings(2)
    assert first == "[Unreleased]"
    found = [_RELEASE.fullmatch(one) for one in releases]
    assert found and all(found), releases
    order = [(tuple(int(one[part]) for part in (1, 2, 3)), one[4]) for one in found if one]
    assert order == sorted(order, reverse=True)


def test_the_newest_release_is_the_version_of_the_checkout() -> None:
    newest = headings(2)[1]
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"', manifest, re.MULTILINE)
    assert version is not None
    assert newest.startswith(f"[{version[1]}] - ")


def test_changes_stand_under_the_headings_of_keep_a_changelog() -> None:
    assert set(headings(3)) <= SECTIONS
