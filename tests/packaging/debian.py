"""The Debian packages in bare systems: installed, used, removed. `make test-packages` runs it.

It takes minutes, root, mmdebstrap and a mirror of Debian, so it is no part of `make test`. The systems lie in
`.build/chroots` from the first time on.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITES = ("bookworm", "trixie")
NAMES = ("allosaur-server", "allosaur")
TIMEOUT_S = 900
NAMESPACE = "allosaur_packages"
#: A busy machine may be late to send; what is tested here is whether it can.
TRIES = 5
#: As its unit does: an ordinary user with the one capability.
AS_UNIT = (
    "setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set -all,+net_raw "
    "--inh-caps -all,+net_raw --ambient-caps -all,+net_raw"
)

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)


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


@pytest.fixture(scope="module", params=SUITES)
def system(
    request: pytest.FixtureRequest, packages: dict[str, Path], bare_system: Callable[[str], Any]
) -> Any:
    """A bare system, in which the packages are installed with what they need and nothing more."""
    system = bare_system(request.param)
    for path in packages.values():
        shutil.copy(path, system.root / path.name)
    system.run("apt-get update -q")
    system.run("apt-get install -qy --no-install-recommends /allosaur*.deb")
    return system


def test_commands_find_each_other(system: Any) -> None:
    told = system.run("allosaur version")
    assert "server binary: /usr/bin/allosaur-server" in told
    for command in ("t-rex-64", "trex-console", "astf-sim", "emu-sim", "ndr", "allosaur-server"):
        assert "usage" in system.run(f"{command} --help").lower()
    assert "OK" in system.run("allosaur doctor --for memory")
    system.run("python3 -c 'import trex.stl.api, trex.astf.api, trex_stl_lib.api, allosaur'")


@pytest.mark.parametrize("profile", ["imix -m 100pps", "http -m 10"])
def test_traffic_runs(system: Any, profile: str) -> None:
    for _ in range(TRIES):
        done = system.tried(f"allosaur run {profile} --local -d 1")
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OK:" in done.stdout


def test_the_server_runs_as_its_unit_starts_it(system: Any) -> None:
    system.run("allosaur-server config check /etc/allosaur/allosaur.yaml")
    serve = "allosaur-server serve --config /etc/allosaur/allosaur.yaml --rpc-port 0 --pub-port 0"
    # `timeout` ends it as systemd does, and says so by this code.
    assert system.run(f"{AS_UNIT} timeout 5 {serve}", code=124).startswith("ready ")


def test_a_port_needs_no_more_than_the_capability(system: Any) -> None:
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


def test_bash_completes(system: Any) -> None:
    script = (
        ". /usr/share/bash-completion/completions/allosaur; "
        'COMP_LINE="allosaur statu" COMP_POINT=14; _python_argcomplete allosaur; echo "${COMPREPLY[*]}"'
    )
    assert system.run(f"bash --norc -c '{script}'").strip() == "status"


def test_pages_and_lists_are_there(system: Any) -> None:
    folder = system.root / "usr/share"
    assert (folder / "man/man1/allosaur-run.1.gz").is_file()
    assert (folder / "man/man8/allosaur-server.8.gz").is_file()
    assert (folder / "zsh/vendor-completions/_allosaur").read_text().startswith("#compdef allosaur")
    assert (folder / "doc/allosaur-server/sbom.cyclonedx.json").is_file()
    assert "rich" in (folder / "doc/allosaur/bundled.txt").read_text()


def test_nothing_is_left_when_it_is_removed(system: Any) -> None:
    """The last test: what was installed is as the package has it, and goes."""
    assert system.run(f"dpkg --verify {' '.join(NAMES)}") == ""
    system.run(f"apt-get purge -qy {' '.join(NAMES)}")
    left = system.run(
        "find / -xdev -iname '*allosaur*' -not -path '/proc/*' -not -path '/tmp/*' -not -name '*.deb'"
    )
    assert left == ""


def test_the_image_builds_without_a_network(system: Any, packages: dict[str, Path], tmp_path: Path) -> None:
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
