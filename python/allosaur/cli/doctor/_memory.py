"""Findings about memory: hugepages, and how much may be locked."""

from __future__ import annotations

import re

from allosaur.cli.doctor._finding import DPDK, Finding
from allosaur.cli.doctor._machine import Machine
from allosaur.cli.doctor._privileges import holds

_HUGEPAGES_MIB_MIN = 256
"""What DPDK needs at least for network cards: `MEMORY_MIB_MIN` of crates/netdev/src/inventory."""
_LOCKED_MIB_MIN = 64
"""Enough for some AF_XDP ports: each takes 8 MiB for what arrives, and 3 MiB for each thread that sends."""
_FILES_MIN = 1024
_MIB = 1 << 20


def hugepages(machine: Machine) -> Finding:
    """Memory in large pages that nobody uses, which DPDK needs for network cards."""
    free_mib = _free_mib(machine, "sys/kernel/mm/hugepages")
    by_node = {
        node: _free_mib(machine, f"sys/devices/system/node/node{node}/hugepages") for node in machine.nodes
    }
    found = f"{free_mib} MiB are free"
    if len(by_node) > 1:
        found += f" ({', '.join(f'node {node}: {mib} MiB' for node, mib in by_node.items())})"
    if free_mib < _HUGEPAGES_MIB_MIN:
        why = f"network cards by DPDK need {_HUGEPAGES_MIB_MIN} MiB; other ports need none"
        return Finding("hugepages", found, why, _more_hugepages(machine), breaks=(DPDK,))
    empty = [str(node) for node, mib in by_node.items() if not mib]
    if len(by_node) > 1 and empty:
        why = f"network cards of node {', '.join(empty)} would use memory of another node, which is slow"
        commands = tuple(_of_node(machine, node) for node in empty)
        return Finding("hugepages", found, why, commands)
    return Finding("hugepages", found)


def locked_memory(machine: Machine) -> Finding:
    """How much memory a process may keep in place: what AF_XDP shares with the kernel."""
    soft, hard = _limit(machine, "Max locked memory")
    if soft is None or holds(machine, "CAP_IPC_LOCK"):
        why = "no limit" if soft is None else "no limit for the server, which has CAP_IPC_LOCK"
        return Finding("locked memory", why)
    found = f"{soft // _MIB} MiB"
    if soft >= _LOCKED_MIB_MIN * _MIB:
        return Finding("locked memory", found)
    why = f"without the capability CAP_IPC_LOCK, ports on AF_XDP need {_LOCKED_MIB_MIN} MiB or more"
    commands: tuple[str, ...] = ("ulimit -l unlimited",)
    if hard is not None and hard < _LOCKED_MIB_MIN * _MIB:
        line = "* - memlock unlimited"
        commands = (f"echo '{line}' | sudo tee /etc/security/limits.d/allosaur.conf", "# Then log in again.")
    return Finding("locked memory", found, why, commands)


def open_files(machine: Machine) -> Finding:
    """How many files and sockets a process may have: each client has some."""
    soft, _ = _limit(machine, "Max open files")
    if soft is None or soft >= _FILES_MIN:
        return Finding("open files", "no limit" if soft is None else str(soft))
    why = f"each client and each port takes some: {_FILES_MIN} or more are usual"
    return Finding("open files", str(soft), why, (f"ulimit -n {_FILES_MIN}",))


def _free_mib(machine: Machine, folder: str) -> int:
    free = 0
    for name in machine.names(folder):
        match = re.fullmatch(r"hugepages-(\d+)kB", name)
        pages = machine.number(f"{folder}/{name}/free_hugepages")
        free += int(match[1]) * pages // 1024 if match and pages else 0
    return free


def _more_hugepages(machine: Machine) -> tuple[str, ...]:
    size_kib = _size_kib(machine)
    if not size_kib:
        return ("# This kernel has no hugepages (CONFIG_HUGETLBFS).",)
    all_pages = machine.number("proc/sys/vm/nr_hugepages") or 0
    free = machine.number(f"sys/kernel/mm/hugepages/hugepages-{size_kib}kB/free_hugepages") or 0
    pages = max(all_pages - free, 0) + _pages(size_kib)
    file = "/etc/sysctl.d/60-allosaur-hugepages.conf"
    return (f"echo vm.nr_hugepages={pages} | sudo tee {file}", "sudo sysctl --system")


def _of_node(machine: Machine, node: str) -> str:
    size_kib = _size_kib(machine)
    folder = f"/sys/devices/system/node/node{node}/hugepages/hugepages-{size_kib}kB"
    return f"echo {_pages(size_kib)} | sudo tee {folder}/nr_hugepages"


def _size_kib(machine: Machine) -> int:
    """Return the default size of a hugepage; 0 where there are none."""
    size = re.search(r"^Hugepagesize:\s+(\d+) kB", machine.text("proc/meminfo"), re.MULTILINE)
    return int(size[1]) if size else 0


def _pages(size_kib: int) -> int:
    """Return how many pages are enough for network cards."""
    return -(-_HUGEPAGES_MIB_MIN * 1024 // max(size_kib, 1))


def _limit(machine: Machine, name: str) -> tuple[int | None, int | None]:
    """Return the soft and the hard limit of this process, in bytes or pieces; `None` is no limit."""
    for line in machine.text("proc/self/limits").splitlines():
        if line.startswith(name):
            words = line[len(name) :].split()
            soft, hard = (int(word) if word.isdigit() else None for word in words[:2])
            return soft, hard
    return None, None
