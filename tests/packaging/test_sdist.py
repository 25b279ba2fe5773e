"""The source distribution has all that a wheel is made of."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_wheel_can_be_built_of_the_source_distribution(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "maturin", "sdist", "--out", tmp_path]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    words = ["git", "ls-files", "python", "crates", "scripts/wheel-data"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    tracked = {name for name in listed if not name.startswith("crates/") or "/src/" in name}
    # The server does not use it.
    tracked -= {name for name in tracked if name.startswith("crates/testkit/")}
    assert len(tracked) > 800
    assert tracked | {"Cargo.toml", "Cargo.lock", ".cargo/config.toml", "LICENSE"} <= names
