"""The server's program on this machine: where it is, what it was built with, and what it may do."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from dataclasses import dataclass

from allosaur.cli.doctor._kinds import PortKind, rows

_TIMEOUT_S = 20
_REVISION_MASK = 0xFF00_0000
_REVISIONS = (0x0200_0000, 0x0300_0000)


@dataclass(frozen=True)
class Server:
    """What is known of the server's program; what is not known is `None`."""

    path: str | None
    problem: str = ""
    version: str | None = None
    package_version: str | None = None
    kinds: tuple[PortKind, ...] = ()
    """The kinds of ports that it knows."""
    capabilities: int = 0
    """Those that its file gives to whoever starts it."""


def find() -> Server:
    """Find the server's program, as all commands do, and ask it."""
    from importlib.metadata import PackageNotFoundError, version

    from allosaur import STLError
    from allosaur.server import find_binary

    try:
        path = str(find_binary())
    except STLError as error:
        return Server(None, problem=str(error))
    try:
        package = version("allosaur")
    except PackageNotFoundError:
        package = None
    try:
        said = _asked(path, "--version").split()
        kinds = rows(json.loads(_asked(path, "ports", "--json")).get("kinds", ()))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Server(path, problem=_words(error), package_version=package)
    return Server(path, "", said[-1] if said else None, package, kinds, file_capabilities(_attribute(path)))


def file_capabilities(attribute: bytes) -> int:
    """Read the capabilities that a program's file gives (`struct vfs_cap_data`, linux/capability.h)."""
    if len(attribute) < struct.calcsize("<5I"):
        return 0
    magic, low, _, high, _ = struct.unpack_from("<5I", attribute)
    is_effective = magic & 1
    return low | high << 32 if magic & _REVISION_MASK in _REVISIONS and is_effective else 0


def _asked(path: str, *words: str) -> str:
    done = subprocess.run([path, *words], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    return done.stdout


def _words(error: Exception) -> str:
    said = getattr(error, "stderr", None) or str(error)
    return " ".join(said.split()) or type(error).__name__


def _attribute(path: str) -> bytes:
    try:
        return os.getxattr(path, "security.capability")
    except OSError:
        return b""
