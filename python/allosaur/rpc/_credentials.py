"""The name and token for a server that asks for one (its ``--rpc-auth``)."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path

from .._errors import STLError

ENVIRONMENT = "ALLOSAUR_RPC_AUTH"
"""Names the file when the client was not given one."""


@dataclass(frozen=True)
class Credentials:
    """A name and its token; the token is never shown."""

    name: str
    token: str = field(repr=False)


def credentials_for(host: str, file: Path | str | None) -> Credentials | None:
    """Return what to send to the server on ``host``: the first line NAME:TOKEN of ``file``.

    Without a file it is the one that ``ALLOSAUR_RPC_AUTH`` names; without that, and for this machine, where
    no server asks, there is none. Raises ``STLError`` when the file cannot be used.
    """
    given = file if file is not None else os.environ.get(ENVIRONMENT)
    if not given or _is_loopback(host):
        return None
    where = f"{ENVIRONMENT}: {given}" if file is None else f"rpc_auth: {given}"
    try:
        if Path(given).stat().st_mode & 0o077:
            raise STLError(f"{where}: others may read this token: chmod 600 {given}")
        lines = Path(given).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise STLError(f"{where} cannot be read: {reason}") from error
    words = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    name, colon, token = words[0].partition(":") if words else ("", "", "")
    if not colon or not name.strip() or not token.strip():
        raise STLError(f"{where}: write a line NAME:TOKEN, as in the server's file")
    return Credentials(name.strip(), token.strip())


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
