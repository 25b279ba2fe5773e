"""The Debian packages in bare systems: installed, used, removed. `make test-packages` runs it.

It takes minutes, root, mmdebstrap and a mirror of Debian, so it is no part of `make test`. The systems lie in
`.build/chroots` from the first time on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROOTS = ROOT / ".build" / "chroots"
SUITES = ("bookworm", "trixie")
NAMES = ("allosaur-server", "allosaur")
TIMEOUT_S = 900
NAMESPACE = "allosaur_packages"
#: A busy machine may be late to send; what is tested here is whether it can.
TRIES = 5
#: In a namespace of its own, so that nothing stays mounted.
ENTER = (
    'root=$1; shift; mount -t proc proc "$root/proc"; mount --bind /dev "$root/dev"; '
    'mount -o ro --rbind /sys "$root/sys"; exec chroot "$root" "$@"'
)
#: As its unit does: an ordinary user with the one capability.
AS_UNIT = (
    "setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set -all,+net_raw "
    "--inh-caps -all,+net_raw --ambient-caps -all,+net_raw"
)

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)


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


def test_lintian_finds_nothing(packages: dict[str, Path]) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    words = ["lintian", "--allow-root", "--fail-on", "error,warning", *packages.values()]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_unit_is_right_and_exposes_little(packages: dict[str, Path], tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    subprocess.run(["dpkg-deb", "-x", packages["allosaur-server"], tmp_path], check=True)
    unit = tmp_path / "usr/lib/systemd/system/allosaur-server.service"
    # The program is where the package has it, which is not yet this system.
    unit.write_text(unit.read_text().replace("ExecStart=/usr", f"ExecStart={tmp_path}/usr"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "allosaur" in line]
    assert ours == []
    words = ["systemd-analyze", "security", "--offline=yes", "--no-pager", unit]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    match = re.search(r"Overall exposure level for .*: ([\d.]+)", told)
    assert match is not None and float(match[1]) <= 2.0, told


@dataclass(frozen=True)
class System:
    """A bare system, and how to run commands in it."""

    root: Path

    def run(self, command: str, *, code: int = 0, inside: Sequence[str] = ()) -> str:
        """Run a line of shell; what it printed. It ends with this exit code, or the test fails."""
        done = self.tried(command, inside)
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def tried(self, command: str, inside: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*inside, "unshare", "--mount", "sh", "-ec", ENTER, "sh", self.root, "sh", "-c", command],
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


def tarball(suite: str) -> Path:
    """A bare system of Debian, made the first time."""
    if os.geteuid() != 0:
        pytest.skip("bare systems need root")
    file = CHROOTS / f"{suite}.tar"
    if not file.is_file():
        if shutil.which("mmdebstrap") is None:
            pytest.skip("mmdebstrap is not installed: sudo apt-get install mmdebstrap")
        CHROOTS.mkdir(parents=True, exist_ok=True)
        # By its name alone it would become a folder.
        words = ["mmdebstrap", "--variant=apt", "--mode=root", "--format=tar", suite, f"{file}.new"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no bare system of {suite} can be had: {done.stderr.strip().splitlines()[-1:]}")
        Path(f"{file}.new").rename(file)
    return file


@pytest.fixture(scope="module", params=SUITES)
def system(
    request: pytest.FixtureRequest, packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[System]:
    """A bare system, in which the packages are installed with what they need and nothing more."""
    root = tmp_path_factory.mktemp(request.param)
    subprocess.run(["tar", "-xf", tarball(request.param), "-C", root], check=True)
    shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
    for path in packages.values():
        shutil.copy(path, root / path.name)
    bare = System(root)
    bare.run("apt-get update -q")
    bare.run("apt-get install -qy --no-install-recommends /allosaur*.deb")
    yield bare
    shutil.rmtree(root)


def test_commands_find_each_other(system: System) -> None:
    told = system.run("allosaur version")
    assert "server binary: /usr/bin/allosaur-server" in told
    for command in ("t-rex-64", "trex-console", "astf-sim", "emu-sim", "ndr", "allosaur-server"):
        assert "usage" in system.run(f"{command} --help").lower()
    assert "OK" in system.run("allosaur doctor --for memory")
    system.run("python3 -c 'import trex.stl.api, trex.astf.api, trex_stl_lib.api, allosaur'")


@pytest.mark.parametrize("profile", ["imix -m 100pps", "http -m 10"])
def test_traffic_runs(system: System, profile: str) -> None:
    for _ in range(TRIES):
        done = system.tried(f"allosaur run {profile} --local -d 1")
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OK:" in done.stdout


def test_the_server_runs_as_its_unit_starts_it(system: System) -> None:
    system.run("allosaur-server config check /etc/allosaur/allosaur.yaml")
    serve = "allosaur-server serve --config /etc/allosaur/allosaur.yaml --rpc-port 0 --pub-port 0"
    # `timeout` ends it as systemd does, and says so by this code.
    assert system.run(f"{AS_UNIT} timeout 5 {serve}", code=124).startswith("ready ")


def test_a_port_needs_no_more_than_the_capability(system: System) -> None:
    """On a veth pair in a network namespace of its own."""
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    try:
        inside = ["ip", "netns", "exec", NAMESPACE]
        for words in ("link add p0 type veth peer name p1", "link set p0 up", "link set p1 up"):
            subprocess.run([*inside, "ip", *words.split()], check=True)
        serve = "allosaur-server serve --ports p0,p1 --rpc-port 0 --pub-port 0"
        told = system.run(f"{AS_UNIT} timeout 5 {serve}", code=124, inside=inside)
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=True)
    assert told.startswith("ready ") and "ports=2" in told


def test_bash_completes(system: System) -> None:
    script = (
        ". /usr/share/bash-completion/completions/allosaur; "
        'COMP_LINE="allosaur statu" COMP_POINT=14; _python_argcomplete allosaur; echo "${COMPREPLY[*]}"'
    )
    assert system.run(f"bash --norc -c '{script}'").strip() == "status"


def test_pages_and_lists_are_there(system: System) -> None:
    folder = system.root / "usr/share"
    assert (folder / "man/man1/allosaur-run.1.gz").is_file()
    assert (folder / "man/man8/allosaur-server.8.gz").is_file()
    assert (folder / "zsh/vendor-completions/_allosaur").read_text().startswith("#compdef allosaur")
    assert (folder / "doc/allosaur-server/sbom.cyclonedx.json").is_file()
    assert "rich" in (folder / "doc/allosaur/bundled.txt").read_text()


def test_nothing_is_left_when_it_is_removed(system: System) -> None:
    """The last test: what was installed is as the package has it, and goes."""
    assert system.run(f"dpkg --verify {' '.join(NAMES)}") == ""
    system.run(f"apt-get purge -qy {' '.join(NAMES)}")
    left = system.run(
        "find / -xdev -iname '*allosaur*' -not -path '/proc/*' -not -path '/tmp/*' -not -name '*.deb'"
    )
    assert left == ""


def test_the_image_builds_without_a_network(
    system: System, packages: dict[str, Path], tmp_path: Path
) -> None:
    """On a base that has what the packages need, as the system has it after they were removed."""
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not installed: sudo apt-get install buildah")
    storage = ["--storage-driver", "vfs", "--root", f"{tmp_path}/images", "--runroot", f"{tmp_path}/run"]

    def buildah(*words: object, before: Sequence[str] = ()) -> str:
        command = [*before, "buildah", *storage, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    subprocess.run(
        ["tar", "-C", system.root, "--exclude=./allosaur*.deb", "-cf", tmp_path / "base.tar", "."], check=True
    )
    (tmp_path / "context" / "dist").mkdir(parents=True)
    for path in packages.values():
        shutil.copy(path, tmp_path / "context" / "dist")
    bare = buildah("from", "scratch")
    buildah("add", bare, tmp_path / "base.tar", "/")
    buildah("commit", bare, "localhost/base")
    words = ("--isolation", "chroot", "--build-arg", "BASE=localhost/base", "--tag", "allosaur")
    no_network = ("unshare", "--net")
    buildah("build", *words, "--file", ROOT / "Containerfile", tmp_path / "context", before=no_network)
    made = buildah("from", "localhost/allosaur")
    assert buildah("run", "--isolation", "chroot", made, "--", "allosaur-server", "--version")
    assert "OK" in buildah(
        "run", "--isolation", "chroot", made, "--", "allosaur", "doctor", "--for", "memory"
    )
