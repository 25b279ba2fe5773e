"""One wheel brings everything: both commands, three import names, types."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

COMMANDS = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command", ["allosaur", "allosaur-server", "t-rex-64", "trex-console", "astf-sim", "emu-sim", "ndr"]
)
def test_commands_are_beside_python(command: str) -> None:
    path = COMMANDS / command
    assert os.access(path, os.X_OK), (
        f"{path} is not there: run these tests with .venv/bin/python after `make install`"
    )
    done = subprocess.run([path, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()


def test_wheel_has_all_import_names_and_types() -> None:
    files = {str(file) for file in distribution("allosaur").files or []}
    assert "allosaur/py.typed" in files
    source = Path(__file__).resolve().parents[2] / "python"
    ours = [str(file.parent.relative_to(source)) for file in (source / "allosaur").rglob("__init__.py")]
    assert "allosaur/cli/commands" in ours
    theirs = ("trex/stl", "trex/astf", "trex/common/services", "trex_stl_lib", "trex_stl_lib/services")
    for package in (*ours, *theirs):
        assert any(file.startswith(package + "/") for file in files), package
    for name in ("allosaur", "trex.stl.api", "trex_stl_lib.api"):
        assert hasattr(importlib.import_module(name), "STLClient"), name
    assert hasattr(importlib.import_module("trex.astf.api"), "ASTFClient")
    assert "allosaur/captures/http_browsing.pcap" in files


def test_wheel_has_all_profiles(tmp_path: Path) -> None:
    files = {str(file) for file in distribution("allosaur").files or []}
    folder = Path(__file__).resolve().parents[2] / "python" / "allosaur" / "profiles"
    ours = {
        f"allosaur/profiles/{path.relative_to(folder)}"
        for path in folder.rglob("*")
        if path.suffix in (".py", ".pcap")
    }
    assert len(ours) > 95
    assert ours <= files
    # In a folder without a checkout around, as after `pip install`.
    for words in (["sim", "imix", "-o", "out.pcap", "--limit", "3"], ["sim", "http"]):
        done = subprocess.run(
            [COMMANDS / "allosaur", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_server_and_package_have_one_version() -> None:
    done = subprocess.run(
        [COMMANDS / "allosaur-server", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-1] == distribution("allosaur").version
