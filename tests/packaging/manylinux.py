"""The wheels of `make wheels`, in bare systems without libzmq and libpcap (`make test-packages`).

What they need of other packages comes from the package index. The wheel of aarch64 runs by QEMU, in a bare
system of that. Where Python is too old for ours the server runs alone, with the client of this machine.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "dist" / "manylinux"
ARCHITECTURES = ("x86_64", "aarch64")
#: Bare systems: Debian 12 and 13.
SUITES = ("bookworm", "trixie")
#: Debian 11, with glibc 2.31 and a Python that is too old for ours: only the server runs there.
OLD_SUITE = "bullseye"
TIMEOUT_S = 900
#: A busy machine may be late to send; what is tested here is whether it can.
TRIES = 5
#: What PEP 600 lets a wheel expect of a system, as far as it has to do with us.
OF_THE_SYSTEM = re.compile(r"(libc|libm|libpthread|libdl|librt|libutil|libgcc_s|ld-linux[-\w]*)\.so\.\d")
#: Whom this machine trusts: the way to the index may have a proxy with a certificate of its own.
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
#: How the kernel knows programs of the other architecture, for systemd-binfmt and for us.
BINFMT = Path("/usr/lib/binfmt.d/qemu-aarch64.conf")

#: Filters of captures are libpcap's, and the way to the server is libzmq's: both in use.
CAPTURE = """
import time
from allosaur import STLClient, STLPktBuilder, STLStream, STLTXSingleBurst
from allosaur.server import LocalServer
from scapy.all import IP, UDP, Ether

packet = STLPktBuilder(pkt=Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025))
with LocalServer(ports=["memory", "memory"]) as server, server.client() as client:
    client.reset(ports=[0, 1])
    client.set_service_mode(ports=[0, 1])
    filters = [f"udp and dst port {port}" for port in (12, 13)]
    ids = [client.start_capture(rx_ports=[1], bpf_filter=text)["id"] for text in filters]
    client.add_streams(STLStream(packet=packet, mode=STLTXSingleBurst(total_pkts=20, pps=1000)), ports=[0])
    client.start(ports=[0], force=True)
    client.wait_on_traffic(ports=[0])
    matched = lambda: [int(client.get_capture_status()[one]["matched"]) for one in ids]
    end = time.monotonic() + 30
    while matched() != [20, 0] and time.monotonic() < end:
        time.sleep(0.05)
    print("captured", *matched())
"""

#: TRex's console on a server of this machine: its lines, and what it said.
CONSOLE = """
import subprocess, sys
from allosaur.server import LocalServer

with LocalServer(ports=["memory", "memory"]) as server:
    ports = ["-s", "127.0.0.1", "-p", str(server.rpc_port), "--async_port", str(server.pub_port)]
    lines = "start -f imix -m 1kpps -d 1 -p 0\\nwait\\nstats -p\\nquit\\n"
    done = subprocess.run([sys.argv[1], *ports], input=lines, capture_output=True, text=True)
    print(done.stdout, done.stderr, f"ended with {done.returncode}")
"""

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)


@pytest.fixture(params=ARCHITECTURES)
def wheel(request: pytest.FixtureRequest) -> Path:
    """The wheel for one architecture."""
    return wheel_for(request.param)


def wheel_for(architecture: str) -> Path:
    wheels = sorted(OUT.glob(f"allosaur-*_{architecture}.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        pytest.skip(f"there is no wheel for {architecture} in dist/manylinux: `make wheels` builds it")
    return wheels[-1]


def tag_of(wheel: Path) -> str:
    """The platform that its name tells: `manylinux_2_28_x86_64`."""
    return wheel.stem.rpartition("-")[2].split(".")[0]


def program(wheel: Path, folder: Path) -> Path:
    """The server's program, out of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/scripts/allosaur-server"))
        (folder / "allosaur-server").write_bytes(archive.read(name))
    (folder / "allosaur-server").chmod(0o755)
    return folder / "allosaur-server"


def run(words: Sequence[object], **variables: str) -> str:
    """Run a program; what it printed. It ends well, or the test fails."""
    done = subprocess.run(
        [str(word) for word in words],
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": os.environ.get("HOME", "/"), **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def again(attempt: Callable[[], str], wanted: str) -> None:
    """What is wanted is printed, at one of as many attempts as a busy machine may need."""
    for left in reversed(range(TRIES)):
        try:
            assert wanted in attempt()
            return
        except AssertionError:
            if not left:
                raise


# --- what is in them ----------------------------------------------------------------------------------------


def test_the_program_needs_the_c_library_that_the_name_tells(wheel: Path, tmp_path: Path) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed: sudo apt-get install binutils")
    oldest = re.fullmatch(r"manylinux_2_(\d+)_(x86_64|aarch64)", tag_of(wheel))
    assert oldest, wheel.name
    told = run(
        ["readelf", "--wide", "--file-header", "--dynamic", "--version-info", program(wheel, tmp_path)]
    )
    machine = {"x86_64": "X86-64", "aarch64": "AArch64"}[oldest[2]]
    assert re.search(rf"Machine: .*{machine}", told)
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", told)
    assert needed
    assert [name for name in needed if not OF_THE_SYSTEM.fullmatch(name)] == []
    versions = {int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", told)}
    assert versions
    assert max(versions) <= int(oldest[1])


def test_it_brings_the_licences_of_what_is_linked_in(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        texts = {
            Path(name).name: archive.read(name).decode()
            for name in archive.namelist()
            if "/licenses/" in name
        }
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        head = archive.read(metadata).decode().partition("\n\n")[0]
    says = {
        "LICENSE": "Apache License",
        "libpcap.txt": "Redistribution and use in source and binary forms",
        "libzmq.txt": "SPECIAL EXCEPTION GRANTED BY COPYRIGHT HOLDERS",  # of the LGPL, for static linking
        "libzmq-gpl.txt": "GNU GENERAL PUBLIC LICENSE",  # the LGPL is written as additions to it
        "libzmq-sha1.txt": "Redistribution and use in source and binary forms",
        "libcxx.txt": "LLVM Exceptions",
        "zig.txt": "MIT License",
    }
    assert texts.keys() == says.keys()
    for name, words in says.items():
        assert words in texts[name], name
        assert re.search(rf"^License-File: .*{re.escape(name)}$", head, re.MULTILINE), name


def test_the_commands_of_the_source_distribution_are_programs() -> None:
    archives = list(OUT.glob("allosaur-*.tar.gz"))
    if not archives:
        pytest.skip("there is no source distribution in dist/manylinux: `make wheels` builds it")
    (file,) = archives
    with tarfile.open(file) as archive:
        modes = {
            Path(member.name).name: member.mode
            for member in archive.getmembers()
            if "/wheel-data/scripts/" in member.name
        }
    assert {"allosaur", "trex-console"} <= modes.keys()
    assert [name for name, mode in modes.items() if mode & 0o111 != 0o111] == []


# --- this machine's architecture ----------------------------------------------------------------------------


@pytest.fixture(scope="module", params=SUITES)
def system(request: pytest.FixtureRequest, bare_system: Callable[[str], Any]) -> Any:
    """A bare Debian with Python and what makes environments, and in one of these the wheel."""
    wheel = wheel_for(os.uname().machine)
    bare = bare_system(request.param)
    bare.run("apt-get update -q && apt-get install -qy --no-install-recommends python3-venv")
    shutil.copy(wheel, bare.root / wheel.name)
    trusted = ""
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, bare.root / "certificates.crt")
        trusted = "PIP_CERT=/certificates.crt "
    bare.run("python3 -m venv /venv")
    bare.run(f"{trusted}/venv/bin/pip install --quiet /{wheel.name}")
    return bare


def test_a_bare_system_without_libraries_sends(system: Any) -> None:
    for library in ("libzmq.so", "libpcap.so"):
        assert system.run(f"find / -xdev -path /venv -prune -o -name '{library}*' -print") == ""
    for words in ("imix -m 100pps", "http -m 10"):
        again(lambda words=words: system.run(f"/venv/bin/allosaur run {words} --local -d 1"), "OK:")


def test_a_bare_system_without_libraries_captures_by_filters(system: Any) -> None:
    (system.root / "capture.py").write_text(CAPTURE, encoding="utf-8")
    again(lambda: system.run("/venv/bin/python /capture.py"), "captured 20 0")


def test_a_bare_system_without_libraries_has_the_console(system: Any) -> None:
    (system.root / "console.py").write_text(CONSOLE, encoding="utf-8")
    told = system.run("/venv/bin/python /console.py /venv/bin/trex-console")
    assert "ended with 0" in told
    assert re.search(r"^opackets +[1-9]", told, re.MULTILINE), told


# --- the server alone, with this machine's client -----------------------------------------------------------


def client(words: Sequence[object], server: str, folder: Path) -> str:
    """Run this machine's Python, or a command of it, whose server is started by a line of shell."""
    script = folder / "server"
    script.write_text(f"#!/bin/sh\n{server}\n", encoding="utf-8")
    script.chmod(0o755)
    python = ROOT / ".venv" / "bin" / "python"
    return run([python, *words], ALLOSAUR_SERVER=str(script), PYTHONPATH=str(ROOT / "python"))


def test_the_server_runs_on_an_old_system(bare_system: Callable[[str], Any], tmp_path: Path) -> None:
    bare = bare_system(OLD_SUITE)
    wheel = wheel_for(os.uname().machine)
    program(wheel, bare.root)
    assert bare.run("/allosaur-server --version").split()[-1] == wheel.name.split("-")[1]
    server = f'exec {shlex.join(bare.words("/allosaur-server"))} "$@"'
    line = ["-m", "allosaur.cli", "run", "imix", "-m", "100pps", "--local", "-d", "1"]
    again(lambda: client(line, server, tmp_path), "OK:")
    again(lambda: client(["-c", CAPTURE], server, tmp_path), "captured 20 0")


# --- the other architecture ---------------------------------------------------------------------------------

#: Since Linux 6.7 a namespace of users has its own table of interpreters of programs (binfmt_misc), so that
#: nothing of this machine changes. What is mounted belongs to the namespace, too.
EMULATED = """
if [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
    cat "$1" >/proc/sys/fs/binfmt_misc/register
fi
root=$2
shift 2
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" "$@"
"""


@dataclass(frozen=True)
class Emulated:
    """A bare system of aarch64, and how to run programs in it."""

    root: Path

    def words(self, *program: str) -> list[str]:
        inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", EMULATED, "sh"]
        return [*inside, str(BINFMT), str(self.root), *program]

    def run(self, line: str) -> str:
        """Run a line of shell; what it printed."""
        return run(
            self.words("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "sh", "-c", line)
        )


@pytest.fixture(scope="module")
def emulated(bare_system: Callable[..., Any]) -> Emulated:
    """A bare Debian 12 of aarch64, with Python: unpacked, and not configured."""
    wheel_for("aarch64")
    if os.uname().machine == "aarch64":
        pytest.skip("that is this machine")
    if not BINFMT.exists():
        pytest.skip("QEMU is not installed: sudo apt-get install qemu-user-static")
    system = Emulated(bare_system("bookworm", "arm64").root)
    done = subprocess.run(system.words("uname", "-m"), capture_output=True, text=True, check=False)
    if done.stdout.strip() != "aarch64":
        pytest.skip(f"this machine cannot run programs of aarch64: {done.stderr.strip()}")
    return system


def test_a_bare_system_of_aarch64_installs_it_and_sends(emulated: Emulated) -> None:
    wheel = wheel_for("aarch64")
    shutil.copy(wheel, emulated.root / wheel.name)
    trusted = ""
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, emulated.root / "certificates.crt")
        trusted = "PIP_CERT=/certificates.crt "
    emulated.run("python3 -m venv /venv")
    emulated.run(f"{trusted}/venv/bin/pip install --quiet --no-compile /{wheel.name}")
    assert "python: 3." in emulated.run("/venv/bin/allosaur version")
    for words in ("imix -m 100pps", "http -m 10"):
        again(lambda words=words: emulated.run(f"/venv/bin/allosaur run {words} --local -d 1"), "OK:")


def test_the_server_of_aarch64_runs_with_the_client_of_this_machine(
    emulated: Emulated, tmp_path: Path
) -> None:
    wheel = wheel_for("aarch64")
    program(wheel, emulated.root)
    assert emulated.run("/allosaur-server --version").split()[-1] == wheel.name.split("-")[1]
    server = f'exec {shlex.join(emulated.words("/allosaur-server"))} "$@"'
    line = ["-m", "allosaur.cli", "run", "imix", "-m", "100pps", "--local", "-d", "1"]
    again(lambda: client(line, server, tmp_path), "OK:")
    again(lambda: client(["-c", CAPTURE], server, tmp_path), "captured 20 0")
