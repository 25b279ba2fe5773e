"""`allosaur version`: which versions of what, for people and for bug reports."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from allosaur import STLError
from allosaur.cli._errors import EXIT_OK
from allosaur.server import find_binary


def execute(options: argparse.Namespace) -> int:
    """Do what `allosaur version` says; return the exit code."""
    binary, server = _server()
    versions = {
        "allosaur": _package("allosaur"),
        "server": server,
        "server_binary": binary,
        "python": platform.python_version(),
        "scapy": _package("scapy"),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
    if options.json:
        print(json.dumps({"command": "version", "ok": True, **versions}, indent=2))
    else:
        print(f"allosaur {versions['allosaur'] or '(not installed, running from its source)'}")
        print(f"  server: {server or 'not found; build it with `cargo build --release`'}")
        for name in ("server_binary", "python", "scapy", "system"):
            print(f"  {name.replace('_', ' ')}: {versions[name] or 'not found'}")
    return EXIT_OK


def _package(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _server() -> tuple[str | None, str | None]:
    """Return the server binary's path, and what it says its version is."""
    try:
        binary = Path(find_binary())
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError, STLError):
        return None, None
    return str(binary), said.stdout.strip()
