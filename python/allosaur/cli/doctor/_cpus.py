"""Findings about CPUs and time: how many there are, who else uses them, and how steady they are."""

from __future__ import annotations

from allosaur.cli._steal import StealTime
from allosaur.cli.doctor._finding import Finding
from allosaur.cli.doctor._machine import Machine, cpu_list, cpus_text

_CPUS_MIN = 3
"""One sends, one receives, and one is left for everybody else."""
_CPUS_TO_ISOLATE_MIN = 4
_KEPT_CORES = 2
"""Cores that stay with the kernel and other programs on a machine that has many."""
_STEAL_MIN = 0.01
_TSC_FLAGS = {"constant_tsc", "nonstop_tsc"}
_FAST_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")
"""Clock sources that a program reads without a system call (the kernel's vDSO)."""


def cpus(machine: Machine) -> Finding:
    """How many CPUs there are, and how much of them this process may use."""
    count, quota = len(machine.cpus), machine.cpu_quota()
    found = f"{count} CPU{'s' if count != 1 else ''}"
    if quota is not None and quota < count:
        why = (
            f"control groups stop all threads for the rest of each period when {quota:g} CPUs' time is used: "
            "load is missed in pieces of many milliseconds"
        )
        remedy = "# Take the limit away: CPUQuota= of the unit, --cpus of the container (not --cpuset-cpus)"
        return Finding("CPUs", f"{found}, of which {quota:g} may be used", why, (remedy,))
    if count < _CPUS_MIN:
        why = f"threads that send and receive take turns with everything else; {_CPUS_MIN} CPUs are better"
        return Finding("CPUs", found, why)
    return Finding("CPUs", found)


def isolation(machine: Machine) -> Finding:
    """Whether CPUs are set apart from the kernel's scheduler and its tick."""
    isolated = cpu_list(machine.text("sys/devices/system/cpu/isolated"))
    tickless = cpu_list(machine.text("sys/devices/system/cpu/nohz_full"))
    count = len(machine.cpus)
    if not isolated and count < _CPUS_TO_ISOLATE_MIN:
        return Finding("isolation", f"of {count} CPUs none can be set apart")
    wanted = cpus_text(isolated or _to_isolate(machine))
    parameters = f"isolcpus={wanted} nohz_full={wanted} rcu_nocbs={wanted}"
    if not isolated:
        why = (
            "other programs and the kernel run on the CPUs of threads that send: packets leave late. "
            f"Then name the CPUs in the configuration: cores: [{_first_two(wanted)}]"
        )
        return Finding("isolation", "no CPUs are set apart", why, machine.at_boot("isolation", parameters))
    if not set(isolated) <= set(tickless):
        why = "the kernel's tick interrupts threads on these CPUs up to a thousand times a second"
        found = f"CPUs {wanted} are set apart, with the kernel's tick"
        return Finding("isolation", found, why, machine.at_boot("isolation", parameters))
    return Finding("isolation", f"CPUs {wanted} are set apart: name them in the configuration (cores: [...])")


def _first_two(cpus_: str) -> str:
    """Return the first two of a list of CPUs, as an example."""
    return ", ".join(map(str, cpu_list(cpus_)[:2]))


def _to_isolate(machine: Machine) -> list[int]:
    """Return all CPUs but those of the first cores."""
    kept: set[int] = set()
    cores = _KEPT_CORES if len(machine.cpus) > 2 * _CPUS_TO_ISOLATE_MIN else 1
    for cpu in machine.cpus:
        if cores and cpu not in kept:
            siblings = f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
            kept |= {cpu, *cpu_list(machine.text(siblings))}
            cores -= 1
    return [cpu for cpu in machine.cpus if cpu not in kept]


def numa(machine: Machine) -> Finding:
    """How many NUMA nodes there are, and whether the kernel moves memory between them."""
    nodes = machine.nodes
    if len(nodes) < 2:
        return Finding("NUMA", "one node: all memory is near")
    found = "; ".join(f"node {node} has CPUs {cpus_text(cpus_)}" for node, cpus_ in nodes.items())
    if machine.number("proc/sys/kernel/numa_balancing"):
        why = (
            "the kernel takes pages of memory away now and then, to learn which node uses them: threads stop"
        )
        command = "echo kernel.numa_balancing=0 | sudo tee /etc/sysctl.d/60-allosaur-numa.conf"
        return Finding("NUMA", found, why, (command, "sudo sysctl --system"))
    return Finding("NUMA", found)


def governor(machine: Machine) -> Finding:
    """Whether CPUs run at their full frequency."""
    folder = "sys/devices/system/cpu"
    governors = {machine.text(f"{folder}/cpu{cpu}/cpufreq/scaling_governor") for cpu in machine.cpus} - {""}
    if not governors:
        who = "the host" if machine.is_virtual else "the firmware"
        return Finding("governor", f"{who} decides on the CPUs' frequency")
    found = ", ".join(sorted(governors))
    if governors == {"performance"}:
        return Finding("governor", found)
    why = "a CPU is slow until it was busy for a while: rates and latencies differ from run to run"
    command = f"echo performance | sudo tee /{folder}/cpu*/cpufreq/scaling_governor"
    return Finding("governor", found, why, (command,))


def clock(machine: Machine) -> Finding:
    """What a thread reads the time from, once a turn."""
    folder = "sys/devices/system/clocksource/clocksource0"
    current = machine.text(f"{folder}/current_clocksource")
    if machine.cpu_flags >= _TSC_FLAGS:
        return Finding(
            "clock", f"the CPU's own counter (TSC) runs evenly; the kernel uses {current or 'another'}"
        )
    if current in _FAST_CLOCKS:
        return Finding("clock", f"{current}, read without a system call")
    why = "each reading of the time is a system call or an access to slow hardware: fewer packets, later"
    available = machine.text(f"{folder}/available_clocksource").split()
    better = next((name for name in _FAST_CLOCKS if name in available), None)
    found = f"{current or 'unknown'}; the CPU's own counter does not run evenly"
    if better is None:
        return Finding("clock", found, why, machine.at_boot("clock", "tsc=reliable"))
    command = f"echo {better} | sudo tee /{folder}/current_clocksource"
    return Finding("clock", found, why, (command, *machine.at_boot("clock", f"clocksource={better}")))


def steal(machine: Machine) -> Finding:
    """What the host of a virtual machine took from its CPUs since it was started."""
    share = StealTime.since_start(machine.text("proc/stat"))
    if not machine.is_virtual and share < _STEAL_MIN:
        return Finding("steal time", "no virtual machine")
    found = f"a virtual machine; its host took away {100 * share:.1f} % of the CPU time that was wanted"
    if share < _STEAL_MIN:
        return Finding("steal time", found)
    why = (
        "while a CPU is taken away nothing is sent or received on it: load is missed, latencies are long. "
        "Take a machine with CPUs of its own, or bind this one's on its host"
    )
    return Finding("steal time", found, why, ("# On a host with libvirt: virsh vcpupin MACHINE VCPU CPU",))
