"""The environment of TRex's official client, for the tests of this folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SKIP_VARIABLE = "ALLOSAUR_SKIP_OFFICIAL_CLIENT"


@pytest.fixture(scope="session")
def client_python() -> str:
    """The Python of the official client's own environment, made when it is not there yet."""
    if os.environ.get(SKIP_VARIABLE):
        pytest.skip(f"{SKIP_VARIABLE} is set")
    made = subprocess.run(
        [str(ROOT / "scripts" / "official-client.sh")], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.fail(
            "cannot make the environment of TRex's official client (it needs the package index once); "
            f"set {SKIP_VARIABLE}=1 to go without these tests.\n{made.stderr}"
        )
    return made.stdout.splitlines()[-1]


@pytest.fixture(scope="session")
def client_environment() -> dict[str, str]:
    """The variables of the client's process. Our package has the same import names: it must not be found."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
