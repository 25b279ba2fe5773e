"""The unit of the server under a systemd that booted: a bare Debian 12 as a container, the packages in it.

`make test-packages` runs it, with root, systemd-nspawn and mmdebstrap.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TIMEOUT_S = 300
UNIT = "allosaur-server.service"
CONFIG = "/etc/allosaur/allosaur.yaml"
#: A busy machine may be late to send; what is tested here is whether it can.
TRIES = 5
#: The bit of CAP_NET_RAW in the sets of a process (include/uapi/linux/capability.h).
NET_RAW = 1 << 13

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)


@dataclass(frozen=True)
class Container:
    """A system that booted, by its first process."""

    init: int
    root: Path

    def run(self, command: str, *, code: int | None = 0, namespaces: str = "--all") -> str:
        """Run a line of shell in it; what it printed. It ends with this exit code, or the test fails."""
        words = ["nsenter", "--target", str(self.init), namespaces, "--", "sh", "-c", command]
        done = subprocess.run(
            words,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert code in (None, done.returncode), (
            f"{command}: {done.returncode}\n{done.stdout}{done.stderr}{self.journal() if code == 0 else ''}"
        )
        return done.stdout

    def journal(self) -> str:
        return self.run(f"journalctl --no-pager -n 30 -u {UNIT}", code=None)

    def property(self, name: str) -> str:
        """One property of the unit, as systemd tells it."""
        return self.run(f"systemctl show --property={name} --value {UNIT}").strip()

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S / 5
        while not condition():
            assert time.monotonic() < deadline, f"{what}\n{self.journal()}"
            time.sleep(0.05)

    def ready(self) -> None:
        """Wait until the server answers."""
        answers = "allosaur status >/dev/null 2>&1 && echo yes"
        self.wait_for(lambda: self.run(answers, code=None).strip() == "yes", "the server does not answer")

    def main_pid(self) -> int:
        """The server's process; its number is the container's own."""
        return int(self.property("MainPID"))


def leader(nspawn: subprocess.Popen[str]) -> int | None:
    """The first process of a container, when it is there."""
    children = Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children")
    return next((int(one) for one in children.read_text().split()), None) if children.exists() else None


@pytest.fixture(scope="module")
def booted(packages: dict[str, Path], bare_system: Callable[[str], Any]) -> Iterator[Container]:
    """Debian 12 with systemd, booted without a network; what the packages need is installed."""
    if shutil.which("systemd-nspawn") is None:
        pytest.skip("systemd-nspawn is not installed: sudo apt-get install systemd-container")
    system = bare_system("bookworm")
    for path in packages.values():
        shutil.copy(path, system.root / path.name)
    system.run("apt-get update -q")
    system.run("apt-get install -qy --no-install-recommends systemd-sysv dbus /allosaur*.deb")
    system.run("dpkg --purge allosaur allosaur-server")  # what they need stays
    words = ["systemd-nspawn", "--boot", "--register=no", "--private-network", "--link-journal=no"]
    words += ["--console=pipe", f"--directory={system.root}"]
    if not Path("/run/systemd/system").is_dir():
        words.append("--keep-unit")  # nobody who would make a scope for it
    nspawn = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield boot(nspawn, system.root)
    finally:
        nspawn.terminate()  # systemd halts the system
        try:
            nspawn.wait(TIMEOUT_S / 5)
        finally:
            nspawn.kill()
            nspawn.wait()


def boot(nspawn: subprocess.Popen[str], root: Path) -> Container:
    """Wait until all units of the system are started."""
    deadline = time.monotonic() + TIMEOUT_S / 3
    told = ""
    while time.monotonic() < deadline:
        if nspawn.poll() is not None:
            assert nspawn.stdout is not None
            pytest.skip(f"systemd-nspawn cannot boot here: {nspawn.stdout.read().strip()}")
        if init := leader(nspawn):
            container = Container(init, root)
            told = container.run("systemctl is-system-running --wait 2>&1", code=None).strip()
            if told in ("running", "degraded"):
                break
        time.sleep(0.1)
    failed = container.run("systemctl --failed --no-legend --plain", code=None) if told == "degraded" else ""
    assert (told, failed) == ("running", "")
    return container


@pytest.fixture(scope="module")
def installed(booted: Container) -> Container:
    """The packages are installed while systemd runs, as an administrator does it."""
    booted.run("dpkg --install /allosaur*.deb")
    return booted


def send(container: Container) -> str:
    for _ in range(TRIES):
        told = container.run("allosaur run imix -m 100pps -d 1 --ports 0,1", code=None)
        if "OK:" in told:
            break
    return told


def test_it_is_not_started_until_somebody_says_so(installed: Container) -> None:
    assert installed.property("ActiveState") == "inactive"
    assert installed.property("UnitFileState") == "disabled"


def test_a_client_sends_by_the_started_server(installed: Container) -> None:
    installed.run(f"systemctl enable --now {UNIT}")
    assert installed.property("ActiveState") == "active"
    installed.ready()
    assert "OK:" in send(installed)


def test_it_runs_as_a_user_of_its_own_with_one_capability(installed: Container) -> None:
    """As the kernel has it, not as the unit says."""
    pid = installed.main_pid()
    status = dict(
        line.split(":\t", 1)
        for line in installed.run(f"cat /proc/{pid}/status").splitlines()
        if ":\t" in line
    )
    for capabilities in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
        assert int(status[capabilities], 16) == NET_RAW, capabilities
    assert "0" not in status["Uid"].split()
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert installed.run(f"ls -ld --time-style=+ /proc/{pid}/cwd/").split()[0] == "drwxr-xr-x"
    devices = set(installed.run(f"ls /proc/{pid}/root/dev").split())
    assert not devices & {"kmsg", "mem", "net", "kvm"}
    written = f"nsenter --target {pid} --mount touch /usr/of-the-server /etc/of-the-server"
    installed.run(written, code=1)


def test_its_exposure_is_what_the_guide_says(installed: Container) -> None:
    told = installed.run(f"systemd-analyze security --no-pager {UNIT}")
    match = re.search(r"Overall exposure level for .*: ([\d.]+)", told)
    assert match is not None and float(match[1]) <= 2.0, told


def test_a_server_that_crashes_is_started_again(installed: Container) -> None:
    before, restarts = installed.main_pid(), int(installed.property("NRestarts"))
    installed.run(f"kill -SEGV {before}")
    installed.wait_for(lambda: int(installed.property("NRestarts")) > restarts, "it is not started again")
    installed.ready()
    assert installed.main_pid() not in (0, before)


def test_interfaces_of_the_system_are_ports(installed: Container) -> None:
    """Under all that the unit takes away, packets leave one end of a cable and arrive at the other."""
    for words in ("link add p0 type veth peer name p1", "link set p0 up", "link set p1 up"):
        installed.run(f"ip {words}", namespaces="--net")
    config = installed.root / CONFIG[1:]
    before = config.read_text(encoding="utf-8")
    config.write_text("ports: [p0, p1]\n", encoding="utf-8")
    try:
        installed.run(f"allosaur-server config check {CONFIG} && systemctl restart {UNIT}")
        installed.ready()
        assert "OK:" in send(installed)
    finally:
        config.write_text(before, encoding="utf-8")


def test_a_wrong_configuration_is_no_reason_to_start_again(installed: Container) -> None:
    config = installed.root / CONFIG[1:]
    before = config.read_text(encoding="utf-8")
    config.write_text("ports: [no-such-interface]\nprots: 2\n", encoding="utf-8")
    try:
        installed.run(f"systemctl stop {UNIT}")
        installed.run(f"systemctl start {UNIT}", code=None)
        installed.wait_for(lambda: installed.property("ActiveState") == "failed", "it does not fail")
        assert installed.property("ExecMainStatus") == "2"
        assert installed.property("NRestarts") == "0"
        assert "prots" in installed.journal()
    finally:
        config.write_text(before, encoding="utf-8")
    installed.run(f"systemctl reset-failed {UNIT} && systemctl start {UNIT}")
    installed.ready()


def test_it_stops_as_it_was_told(installed: Container) -> None:
    installed.run(f"systemctl stop {UNIT}")
    assert installed.property("ActiveState") == "inactive"
    assert installed.property("Result") == "success"


def test_removing_the_package_stops_it(installed: Container) -> None:
    """And purging leaves nothing of it: no state, no unit that systemd knows."""
    installed.run(f"systemctl start {UNIT}")
    installed.ready()
    pid = installed.main_pid()
    installed.run("dpkg --purge allosaur allosaur-server")
    installed.run(f"test -e /proc/{pid}", code=1)
    assert installed.property("LoadState") == "not-found"
    left = installed.run("find /etc /usr /var/lib /run -xdev -iname '*allosaur*' -not -path '/var/lib/apt/*'")
    assert left == ""
