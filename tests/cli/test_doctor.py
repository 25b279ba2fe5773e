"""`allosaur doctor` on machines that are made up: a good one, and the same with one thing wrong."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli.doctor._command import look
from allosaur.cli.doctor._finding import IMPROVE, MISSING, OK, Finding
from allosaur.cli.doctor._kinds import names
from allosaur.cli.doctor._machine import Machine, cpu_list, cpus_text
from allosaur.cli.doctor._server import Server, file_capabilities, find

CPUS = range(8)
CARD = "sys/devices/pci0000:00/0000:03:00.0"
PAGES = "hugepages/hugepages-2048kB/free_hugepages"
LIMITS = "Max open files            1024 524288 files\nMax locked memory         {} {} bytes\n"
STATUS = "Name:\tallosaur\nCapEff:\t{:016x}\nCapBnd:\t000001ffffffffff\nNoNewPrivs:\t{}\n"
ALL = (1 << 41) - 1
BARE_METAL = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n"
PROTOCOLS = "protocol  size sockets\nPACKET 1472 1\nXDP 960 0\nUNIX 1152 20\n"
GOOD: dict[str, str] = {
    "proc/sys/kernel/osrelease": "6.1.0-13-amd64\n",
    "proc/self/status": STATUS.format(ALL, 0),
    "proc/self/limits": LIMITS.format(8 << 20, 8 << 20),
    "proc/self/cgroup": "0::/user.slice/session\n",
    "proc/stat": "cpu  1000 0 1000 90000 0 0 0 0 0 0\n",
    "proc/cpuinfo": BARE_METAL,
    "proc/meminfo": "MemTotal: 1 kB\nHugepagesize:       2048 kB\n",
    "proc/net/protocols": PROTOCOLS,
    "proc/net/route": "Iface\tDestination\n",
    "proc/sys/vm/nr_hugepages": "256\n",
    "usr/sbin/update-grub": "",
    "sys/bus/pci/drivers/vfio-pci/new_id": "",
    "sys/devices/system/cpu/online": "0-7\n",
    "sys/devices/system/cpu/isolated": "2-7\n",
    "sys/devices/system/cpu/nohz_full": "2-7\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet\n",
    "sys/devices/system/node/node0/cpulist": "0-3\n",
    "sys/devices/system/node/node1/cpulist": "4-7\n",
    f"sys/devices/system/node/node0/{PAGES}": "128\n",
    f"sys/devices/system/node/node1/{PAGES}": "128\n",
    f"sys/kernel/mm/{PAGES}": "256\n",
    "sys/kernel/iommu_groups/7/type": "identity\n",
    f"{CARD}/net/eth1/type": "1\n",
    f"{CARD}/net/eth1/flags": "0x1003\n",
    f"{CARD}/net/eth1/carrier": "1\n",
    f"{CARD}/net/eth1/speed": "25000\n",
    f"{CARD}/net/eth1/queues/rx-0/x": "",
    f"{CARD}/net/eth1/queues/tx-0/x": "",
    f"{CARD}/class": "0x020000\n",
    f"{CARD}/numa_node": "1\n",
    f"{CARD}/current_link_width": "8\n",
    f"{CARD}/max_link_width": "8\n",
    f"{CARD}/current_link_speed": "16.0 GT/s PCIe\n",
    f"{CARD}/max_link_speed": "16.0 GT/s PCIe\n",
    **{f"sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor": "performance\n" for n in CPUS},
    **{
        f"sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": f"{n % 4},{n % 4 + 4}\n" for n in CPUS
    },
}
LINKS = {
    "sys/bus/pci/devices/0000:03:00.0": f"../../../devices/{CARD.removeprefix('sys/devices/')}",
    f"{CARD}/driver": "../../../bus/pci/drivers/ice",
    f"{CARD}/iommu_group": "../../../kernel/iommu_groups/7",
    f"{CARD}/net/eth1/device": "../../../0000:03:00.0",
    "sys/class/net/eth1": f"../../devices/{CARD.removeprefix('sys/devices/')}/net/eth1",
}
# The kinds of ports are the server's own, as if it were built with all of them.
ROWS = tuple(replace(kind, is_built=True) for kind in find().kinds)
KINDS = names(ROWS)
SERVER = Server("/usr/bin/allosaur-server", "", "0.1.0", "0.1.0", ROWS)
VIRTUAL = {"proc/cpuinfo": BARE_METAL.replace("fpu", "hypervisor"), "sys/kernel/iommu_groups/7/type": None}
NO_PRIVILEGES = {"proc/self/status": STATUS.format(0, 0)}
GRUB = "sudo install -Dm 644 /dev/stdin /etc/default/grub.d/allosaur-"

Build = Callable[..., Machine]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Make up a machine: the good one, with other files and links; `None` takes one away."""

    def built(
        changes: Mapping[str, str | None] | None = None,
        links: Mapping[str, str | None] | None = None,
        server: Server = SERVER,
    ) -> Machine:
        root = tmp_path / f"machine{len(list(tmp_path.iterdir()))}"
        for name, text in {**GOOD, **(changes or {})}.items():
            if text is not None:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
        for name, target in {**LINKS, **(links or {})}.items():
            if target is not None:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).symlink_to(target)
        return Machine(root, server)

    return built


def named(machine: Machine, name: str) -> Finding:
    (found,) = (one for one in look(machine) if one.name == name)
    return found


def test_of_a_good_machine_nothing_is_asked(build: Build) -> None:
    machine = build()
    assert [one for one in look(machine) if one.level(KINDS) != OK or one.commands] == []
    found = named(machine, "card eth1").found
    assert found == "ice, link up, 25 Gbit/s, 1 receive and 1 transmit queues, node 1"


@pytest.mark.parametrize(
    ("changes", "name", "level", "breaks", "words"),
    [
        ({"proc/sys/kernel/osrelease": "5.4.0-1"}, "kernel", MISSING, ("af_xdp",), ["5.4.0", "newer kernel"]),
        ({"proc/sys/kernel/osrelease": "4.19.0"}, "kernel", MISSING, ("af_packet", "af_xdp"), ["4.20"]),
        (
            NO_PRIVILEGES,
            "AF_PACKET",
            MISSING,
            ("af_packet", "af_xdp"),
            ["sudo setcap cap_net_raw+ep /usr/bin"],
        ),
        (
            NO_PRIVILEGES,
            "AF_XDP",
            MISSING,
            ("af_xdp",),
            ["setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep"],
        ),
        (
            {**NO_PRIVILEGES, ".dockerenv": ""},
            "AF_PACKET",
            MISSING,
            ("af_packet", "af_xdp"),
            ["--cap-add=NET_RAW"],
        ),
        (
            {"proc/net/protocols": "protocol size\nPACKET 1 1\n"},
            "AF_XDP",
            MISSING,
            ("af_xdp",),
            ["CONFIG_XDP_SOCKETS"],
        ),
        (NO_PRIVILEGES, "locked memory", IMPROVE, (), ["8 MiB", "limits.d/allosaur.conf"]),
        ({"proc/self/limits": LIMITS.replace("1024", "256")}, "open files", IMPROVE, (), ["ulimit -n 1024"]),
        (
            {"sys/bus/pci/drivers/vfio-pci/new_id": None},
            "DPDK",
            MISSING,
            ("dpdk",),
            ["sudo modprobe vfio-pci"],
        ),
        (
            {f"sys/kernel/mm/{PAGES}": "8"},
            "hugepages",
            MISSING,
            ("dpdk",),
            ["16 MiB", "vm.nr_hugepages=376 "],
        ),
        (
            {f"sys/devices/system/node/node1/{PAGES}": "0"},
            *("hugepages", IMPROVE, (), ["echo 128 | sudo tee /sys/devices/system/node/node1/hugepages/"]),
        ),
        (
            {"sys/kernel/iommu_groups/7/type": None},
            "IOMMU",
            MISSING,
            ("dpdk",),
            [f"{GRUB}iommu", "intel_iommu=on"],
        ),
        (VIRTUAL, "IOMMU", MISSING, ("dpdk",), ["enable_unsafe_noiommu_mode"]),
        ({"sys/kernel/iommu_groups/7/type": "DMA-FQ"}, "IOMMU", IMPROVE, (), ["eth1", "iommu=pt"]),
        ({"sys/devices/system/cpu/online": "0-1"}, "CPUs", IMPROVE, (), ["2 CPUs"]),
        (
            {"sys/fs/cgroup/user.slice/cpu.max": "150000 100000"},
            "CPUs",
            IMPROVE,
            (),
            ["1.5 may be used", "CPUQuota"],
        ),
        (
            {"sys/devices/system/cpu/isolated": ""},
            "isolation",
            IMPROVE,
            (),
            [f"{GRUB}isolation", "isolcpus=1-3,5-7 "],
        ),
        ({"sys/devices/system/cpu/nohz_full": ""}, "isolation", IMPROVE, (), ["nohz_full=2-7"]),
        (
            {"proc/sys/kernel/numa_balancing": "1"},
            "NUMA",
            IMPROVE,
            (),
            ["node 1 has CPUs 4-7", "numa_balancing=0"],
        ),
        (
            {"sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": "powersave"},
            *("governor", IMPROVE, (), ["performance, powersave", "echo performance | sudo tee /sys/"]),
        ),
        (
            {"proc/stat": "cpu  600 0 200 90000 0 0 0 200 0 0\n"},
            "steal time",
            IMPROVE,
            (),
            ["20.0 %", "vcpupin"],
        ),
        (
            {f"{CARD}/current_link_width": "4"},
            "card eth1",
            IMPROVE,
            (),
            ["4 of its 8", "lspci -vv -s 0000:03:00.0"],
        ),
        (
            {f"{CARD}/current_link_speed": "8.0 GT/s PCIe"},
            "card eth1",
            IMPROVE,
            (),
            ["8.0 GT/s PCIe of 16.0"],
        ),
        (
            {f"{CARD}/net/eth1/flags": "0x1002"},
            "card eth1",
            IMPROVE,
            (),
            ["ice, off", "sudo ip link set eth1 up"],
        ),
    ],
)
def test_what_is_wrong_is_named_with_the_command(
    build: Build,
    changes: dict[str, str | None],
    name: str,
    level: str,
    breaks: tuple[str, ...],
    words: list[str],
) -> None:
    finding = named(build(changes), name)
    assert (finding.level(KINDS), finding.breaks) == (level, breaks)
    assert (finding.why and finding.commands) or name == "CPUs"
    told = " ".join([finding.found, finding.why, *finding.commands])
    assert [word for word in words if word not in told] == [], told


@pytest.mark.parametrize("kind", ["memory", "dpdk"])
def test_what_is_not_asked_for_is_not_missing(build: Build, kind: str) -> None:
    """Packet sockets matter to who wants ports on interfaces."""
    assert named(build(NO_PRIVILEGES), "AF_PACKET").level([kind]) == IMPROVE


def test_a_slow_clock_has_a_better_one(build: Build) -> None:
    folder = "sys/devices/system/clocksource/clocksource0"
    uneven = {"proc/cpuinfo": "flags : fpu tsc\n", f"{folder}/current_clocksource": "hpet\n"}
    finding = named(build(uneven), "clock")
    assert finding.commands[0] == f"echo tsc | sudo tee /{folder}/current_clocksource"
    none = {**uneven, f"{folder}/available_clocksource": "hpet acpi_pm\n"}
    assert "tsc=reliable" in named(build(none), "clock").commands[0]


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("usr/sbin/grubby", 'sudo grubby --update-kernel=ALL --args="isolcpus=1-3,5-7'),
        ("etc/nothing", "# Add to the kernel's command line"),
        (".dockerenv", "# On the host"),
    ],
)
def test_boot_parameters_are_given_as_the_system_does(build: Build, tool: str, words: str) -> None:
    changes = {"usr/sbin/update-grub": None, tool: "", "sys/devices/system/cpu/isolated": ""}
    assert named(build(changes), "isolation").commands[0].startswith(words)


def test_a_big_machine_keeps_two_cores_for_the_others(build: Build) -> None:
    changes = {"sys/devices/system/cpu/online": "0-15\n", "sys/devices/system/cpu/isolated": ""}
    # CPUs 0 and 4 are a core, so are 1 and 5.
    assert "isolcpus=2-3,6-15 " in named(build(changes), "isolation").commands[0]


def test_cards_of_dpdk_and_of_nobody_are_told(build: Build) -> None:
    no_interface = {name: None for name in GOOD if "/net/eth1/" in name}
    links: dict[str, str | None] = {name: None for name in LINKS if "eth1" in name}
    given = {**links, f"{CARD}/driver": "../../../bus/pci/drivers/vfio-pci"}
    assert named(build(no_interface, given), "card 0000:03:00.0").found == "vfio-pci hands it to DPDK"
    nobodys = named(build(no_interface, {**links, f"{CARD}/driver": None}), "card 0000:03:00.0")
    assert nobodys.commands == ("allosaur ports prepare 0000:03:00.0",)


def test_without_interfaces_there_is_memory(build: Build) -> None:
    finding = named(build({f"{CARD}/net/eth1/type": "772\n"}), "interfaces")
    assert finding.breaks == ("af_packet", "af_xdp")
    assert finding.commands[0] == "sudo ip link add tg0 type veth peer name tg1"


def test_an_empty_machine_is_no_error(tmp_path: Path) -> None:
    findings = look(Machine(tmp_path, Server(None, "there is no 'allosaur-server'")))
    assert {one.name for one in findings if one.level(["memory"]) == MISSING} == {"server"}


@pytest.mark.parametrize(
    ("server", "level", "words"),
    [
        (Server("/s", "it died"), MISSING, "it died"),
        (replace(SERVER, version="0.0.9"), IMPROVE, "0.0.9"),
    ],
)
def test_a_server_that_does_not_fit_is_told(build: Build, server: Server, level: str, words: str) -> None:
    finding = named(build(server=server), "server")
    assert finding.level(["memory"]) == level
    assert words in finding.found + finding.why


@pytest.mark.parametrize(
    ("status", "level"),
    [
        (STATUS.format(0, 0), OK),
        (STATUS.format(0, 1), MISSING),
        (STATUS.format(0, 0).replace("CapBnd:\t000001ff", "CapBnd:\t00000000").replace("f", "0"), MISSING),
    ],
    ids=["given", "no new privileges", "out of bounds"],
)
def test_capabilities_of_the_file_count_where_they_can(build: Build, status: str, level: str) -> None:
    raw = struct.pack("<5I", 0x0200_0001, 1 << 13, 0, 0, 0)
    server = replace(SERVER, capabilities=file_capabilities(raw))
    assert named(build({"proc/self/status": status}, server=server), "AF_PACKET").level(KINDS) == level


def test_capabilities_are_read_as_linux_writes_them() -> None:
    """`struct vfs_cap_data` and `vfs_ns_cap_data` of linux/capability.h."""
    assert file_capabilities(struct.pack("<5I", 0x0200_0001, 1 << 13, 0, 1 << 7, 0)) == 1 << 13 | 1 << 39
    assert file_capabilities(struct.pack("<6I", 0x0300_0001, 1 << 13, 0, 0, 0, 1000)) == 1 << 13
    assert file_capabilities(struct.pack("<5I", 0x0200_0000, 1 << 13, 0, 0, 0)) == 0, "not effective"
    assert file_capabilities(b"") == 0


def test_lists_of_cpus_are_linuxs() -> None:
    assert cpu_list("0-2,8,10-11\n") == [0, 1, 2, 8, 10, 11]
    assert cpus_text([11, 10, 8, 2, 1, 0]) == "0-2,8,10-11"
    assert cpu_list("") == []


def test_the_real_server_says_what_it_is(binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOSAUR_SERVER", binary)
    server = find()
    assert (server.path, server.problem) == (binary, "")
    assert server.version
    assert names(server.kinds) == ("memory", "dummy", "af_packet", "af_xdp", "dpdk")
    titles = {kind.title for kind in server.kinds if kind.sockets}
    assert titles == {"AF_PACKET", "AF_XDP"}


def test_a_program_that_is_no_server_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "allosaur-server"
    program.write_text("#!/bin/sh\necho 'libzmq.so.5: cannot open' >&2\nexit 127\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("ALLOSAUR_SERVER", str(program))
    assert find().problem == "libzmq.so.5: cannot open"


def test_the_command_tells_and_ends_as_the_guide_says(allosaur: Any, build: Build, binary: str) -> None:
    variables = {"ALLOSAUR_SERVER": binary, "COLUMNS": "80"}
    good, bad = build(), build(NO_PRIVILEGES)

    def told(machine: Machine, *words: str) -> Any:
        return allosaur("doctor", "--root", machine.root, *words, variables=variables)

    ended = told(good)
    assert ended.code == 0, ended
    assert "OK: all that ports of memory and af_packet need is there" in ended.out
    ended = told(bad)
    assert ended.code == 3, ended
    assert re.search(r"^missing  AF_PACKET +the server lacks CAP_NET_RAW$", ended.out, re.MULTILINE)
    assert f"           sudo setcap cap_net_raw+ep {binary}\n" in ended.out
    assert "MISSING: 1 thing that ports of memory and af_packet need" in ended.out
    assert told(bad, "--for", "memory").code == 0
    assert told(bad, "-q").out == ended.out, "it is what was asked for"


def test_json_has_every_finding(allosaur: Any, build: Build, binary: str) -> None:
    machine = build(NO_PRIVILEGES)
    words = ("doctor", "--root", machine.root, "--for", "af_xdp", "--json")
    ended = allosaur(*words, variables={"ALLOSAUR_SERVER": binary})
    told = ended.json()
    assert (ended.code, told["ok"], told["for"]) == (3, False, ["af_xdp"])
    assert told["ports"]["memory"] and not told["ports"]["af_xdp"]
    checks = {one["name"]: one for one in told["checks"]}
    assert checks["AF_XDP"]["level"] == "missing"
    assert checks["AF_XDP"]["breaks"] == ["af_xdp"]
    assert checks["AF_XDP"]["commands"][0].startswith("sudo setcap ")
    assert checks["clock"] == {
        "name": "clock",
        "level": "ok",
        "found": "the CPU's own counter (TSC) runs evenly; the kernel uses tsc",
        "why": None,
        "commands": [],
        "breaks": [],
    }
    assert {*checks} == {one.name for one in look(machine)}


def test_this_machine_is_looked_at_without_an_error(allosaur: Any) -> None:
    ended = allosaur("doctor", "--for", "memory", "--json")
    assert {one["level"] for one in ended.json()["checks"]} <= {OK, IMPROVE, MISSING}
    assert ended.err == ""


def test_wrong_words_are_refused(allosaur: Any, tmp_path: Path) -> None:
    allosaur("doctor", "--for", "af_xpd").refused(
        "there is no value of --for 'af_xpd'", "did you mean af_xdp?"
    )
    allosaur("doctor", "--root", tmp_path).refused(str(tmp_path), "no folder proc")
