"""The wheel of `dist/` on each Python that it is for, installed, and packets sent (`make test-packages`).

A Python is one of this machine (`python3.12` on the path, or pyenv's), or that of a bare Debian which has it.
What the wheel needs of other packages comes from the package index, and libzmq and libpcap from Debian.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
#: Bare systems, and the Python that each of them has.
SUITES = {"bookworm": "3.11", "trixie": "3.13", "forky": "3.14"}
LIBRARIES = "libzmq5 libpcap0.8"
#: Whom this machine trusts: the way to the index may have a proxy with a certificate of its own.
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
TIMEOUT_S = 900
#: A busy machine may be late to send; what is tested here is whether it can.
TRIES = 5
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The newest wheel."""
    wheels = sorted((ROOT / "dist").glob("allosaur-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        pytest.skip("there is no wheel in dist/: `make wheel` builds one")
    return wheels[-1]


def run(words: Sequence[object]) -> str:
    """Run a program without this environment's packages; what it printed. It ends well, or the test fails."""
    variables = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ALLOSAUR_SERVER")
    }
    done = subprocess.run(
        [str(word) for word in words],
        env=variables,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def sends(attempt: Callable[[str], str], folder: str) -> None:
    """Streams and flows run, at one of as many attempts as a busy machine may need."""
    for words in ("imix -m 100pps", "http -m 10"):
        for left in reversed(range(TRIES)):
            try:
                assert "OK:" in attempt(f"{folder}/bin/allosaur run {words} --local -d 1")
                break
            except AssertionError:
                if not left:
                    raise


def interpreter(version: str) -> Path | None:
    """A Python of this machine of that version, with what makes environments."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = shutil.which(f"python{version}")
    found = [Path(named)] if named else []
    for path in [*found, *sorted(pyenv.glob(f"{version}.*/bin/python{version}"))]:
        check = [path, "-c", f"import ensurepip, venv; {VERSION}"]
        if subprocess.run(check, capture_output=True, text=True, check=False).stdout.strip() == version:
            return path
    return None


@pytest.mark.parametrize("version", PYTHONS)
def test_a_python_of_this_machine_installs_it_and_sends(version: str, wheel: Path, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    run([python, "-m", "venv", tmp_path / "venv"])
    run([tmp_path / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel])
    told = run([tmp_path / "venv/bin/allosaur", "version"])
    assert f"python: {version}." in told
    assert f"server binary: {tmp_path}/venv/bin/allosaur-server" in told
    sends(lambda line: run(line.split()), f"{tmp_path}/venv")


@pytest.mark.parametrize("suite", SUITES)
def test_a_bare_debian_installs_it_and_sends(
    suite: str, wheel: Path, bare_system: Callable[[str], Any]
) -> None:
    system = bare_system(suite)
    install = "apt-get install -qy --no-install-recommends"
    system.run(f"apt-get update -q && {install} python3-venv {LIBRARIES}")
    found = system.run(f'python3 -c "{VERSION}"').strip()
    if found != SUITES[suite]:
        pytest.skip(f"{suite} has Python {found} by now, not {SUITES[suite]}")
    shutil.copy(wheel, system.root / wheel.name)
    trusted = ""
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, system.root / "certificates.crt")
        trusted = "PIP_CERT=/certificates.crt "
    system.run("python3 -m venv /venv")
    system.run(f"{trusted}/venv/bin/pip install --quiet /{wheel.name}")
    assert f"python: {found}." in system.run("/venv/bin/allosaur version")
    sends(lambda line: str(system.run(line)), "/venv")
