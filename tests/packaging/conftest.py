"""Bare systems of Debian, and the packages that are installed in them (`make test-packages`).

They need root, mmdebstrap and a mirror of Debian; the systems lie in `.build/chroots` from the first time on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROOTS = ROOT / ".build" / "chroots"
TIMEOUT_S = 900
#: In a namespace of its own, so that nothing stays mounted.
ENTER = (
    'root=$1; shift; mount -t proc proc "$root/proc"; mount --bind /dev "$root/dev"; '
    'mount -o ro --rbind /sys "$root/sys"; exec chroot "$root" "$@"'
)


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The packages of the newest wheel of `dist/`, by name."""
    if not list((ROOT / "dist").glob("allosaur-*.whl")):
        pytest.skip("there is no wheel in dist/: `make wheel` builds one")
    for tool in ("dpkg-deb", "dpkg-shlibdeps"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("packages")
    (wheel,) = sorted((ROOT / "dist").glob("allosaur-*.whl"), key=lambda path: path.stat().st_mtime)[-1:]
    subprocess.run([ROOT / "scripts" / "deb.sh", wheel, folder], check=True)
    return {path.name.partition("_")[0]: path for path in folder.glob("*.deb")}


@dataclass(frozen=True)
class System:
    """A bare system, and how to run commands in it."""

    root: Path

    def run(self, command: str, *, code: int = 0, inside: Sequence[str] = ()) -> str:
        """Run a line of shell; what it printed. It ends with this exit code, or the test fails."""
        done = self.tried(command, inside)
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def words(self, *program: str) -> list[str]:
        """The words that run a program in it."""
        return ["unshare", "--mount", "sh", "-ec", ENTER, "sh", str(self.root), *program]

    def tried(self, command: str, inside: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*inside, *self.words("sh", "-c", command)],
            env={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "DEBIAN_FRONTEND": "noninteractive",
                "HOME": "/root",
            },
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


def tarball(suite: str, foreign: str | None = None) -> Path:
    """A bare system of Debian, made the first time; of a foreign architecture only unpacked, with Python."""
    if os.geteuid() != 0:
        pytest.skip("bare systems need root")
    file = CHROOTS / (f"{suite}-{foreign}.tar" if foreign else f"{suite}.tar")
    if not file.is_file():
        if shutil.which("mmdebstrap") is None:
            pytest.skip("mmdebstrap is not installed: sudo apt-get install mmdebstrap")
        CHROOTS.mkdir(parents=True, exist_ok=True)
        # A mirror may be weeks behind: its signature counts, not its age. By its name alone the archive would
        # become a folder.
        words = ["mmdebstrap", "--mode=root", "--format=tar"]
        words += [f"--variant={'extract' if foreign else 'apt'}"]
        if foreign:
            # Wheels of others, such as pyzmq's, may expect the C++ library, which apt brings elsewhere.
            words += [f"--architectures={foreign}", "--include=?essential"]
            words += ["--include=python3-venv", "--include=libstdc++6"]
        words += ['--aptopt=Acquire::Check-Valid-Until "false"', suite, f"{file}.new"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no bare system of {suite} can be had: {done.stderr.strip().splitlines()[-1:]}")
        Path(f"{file}.new").rename(file)
    return file


@pytest.fixture(scope="module")
def bare_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., System]]:
    """Unpacks a bare system of a suite, of this or a foreign architecture, for the tests of one module."""
    roots: list[Path] = []

    def unpack(suite: str, foreign: str | None = None) -> System:
        archive = tarball(suite, foreign)
        root = tmp_path_factory.mktemp(suite)
        roots.append(root)
        subprocess.run(["tar", "-xf", archive, "-C", root], check=True)
        shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
        return System(root)

    yield unpack
    for root in roots:
        shutil.rmtree(root)
