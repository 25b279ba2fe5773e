"""Findings about memory: hugepages, and how much may be locked."""

from __future__ import annotations

import re

from allosaur.cli.doctor._finding import Finding
from allosaur.cli.doctor._kinds import names, titles
from allosaur.cli.doctor._machine import Machine
from allosaur.cli.doctor._privileges import holds

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
    kinds = [kind for kind in machine.server.kinds if kind.hugepages_mib]
    needed_mib = max((kind.hugepages_mib for kind in kinds), default=0)
    if free_mib < needed_mib:
        why = f"network cards by {titles(kinds)} need {needed_mib} MiB; other ports need none"
        return Finding("hugepages", found, why, _more_hugepages(machine, needed_mib), breaks=names(kinds))
    empty = [str(node) for node, mib in by_node.items() if not mib]
    if len(by_node) > 1 and empty:
        why = f"network cards of node {', '.join(empty)} would use memory of another node, which is slow"
        commands = tuple(_of_node(machine, node, needed_mib) for node in empty)
        return Finding("hugepages", found, why, commands)
    return Finding("hugepages", found)


def locked_memory(machine: Machine) -> Finding:
    """How much memory a process may keep in place: what some ports share with the kernel."""
    soft, hard = _limit(machine, "Max locked memory")
    if soft is None or holds(machine, "CAP_IPC_LOCK"):
        why = "no limit" if soft is None else "no limit for the server, which has CAP_IPC_LOCK"
        return Finding("locked memory", why)
    found = f"{soft // _MIB} MiB"
    kinds = [kind for kind in machine.server.kinds if kind.locked_mib * _MIB > soft]
    if not kinds:
        return Finding("locked memory", found)
    needed_mib = max(kind.locked_mib for kind in kinds)
    why = f"without the capability CAP_IPC_LOCK, ports on {titles(kinds)} need {needed_mib} MiB or more"
    commands: tuple[str, ...] = ("ulimit -l unlimited",)
    if hard is not None and hard < needed_mib * _MIB:
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


def _more_hugepages(machine: Machine, needed_mib: int) -> tuple[str, ...]:
    size_kib = _size_kib(machine)
    if not size_kib:
        return ("# This kernel has no hugepages (CONFIG_HUGETLBFS).",)
    all_pages = machine.number("proc/sys/vm/nr_hugepages") or 0
    free = machine.number(f"sys/kernel/mm/hugepages/hugepages-{size_kib}kB/free_hugepages") or 0
    pages = max(all_pages - free, 0) + _pages(needed_mib, size_kib)
    file = "/etc/sysctl.d/60-allosaur-hugepages.conf"
    return (f"echo vm.nr_hugepages={pages} | sudo tee {file}", "sudo sysctl --system")


def _of_node(machine: Machine, node: str, needed_mib: int) -> str:
    size_kib = _size_kib(machine)
    folder = f"/sys/devices/system/node/node{node}/hugepages/hugepages-{size_kib}kB"
    return f"echo {_pages(needed_mib, size_kib)} | sudo tee {folder}/nr_hugepages"


def _size_kib(machine: Machine) -> int:
    """Return the default size of a hugepage; 0 where there are none."""
    size = re.search(r"^Hugepagesize:\s+(\d+) kB", machine.text("proc/meminfo"), re.MULTILINE)
    return int(size[1]) if size else 0


def _pages(needed_mib: int, size_kib: int) -> int:
    """Return how many pages are enough."""
    return -(-needed_mib * 1024 // max(size_kib, 1))


def _limit(machine: Machine, name: str) -> tuple[int | None, int | None]:
    """Return the soft and the hard limit of this process, in bytes or pieces; `None` is no limit."""
    for line in machine.text("proc/self/limits").splitlines():
        if line.startswith(name):
            words = line[len(name) :].split()
            soft, hard = (int(word) if word.isdigit() else None for word in words[:2])
            return soft, hard
    return None, None
