"""Findings about the kernel and the server's program: what they can do, and what the program may."""

from __future__ import annotations

from collections.abc import Iterator

from allosaur.cli.doctor._finding import Finding
from allosaur.cli.doctor._kinds import CARD, PortKind, names, titles
from allosaur.cli.doctor._machine import Machine

_CAPABILITIES = {
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_IPC_LOCK": 14,
    "CAP_SYS_ADMIN": 21,
    "CAP_BPF": 39,
}


def kernel(machine: Machine) -> Finding:
    """Whether the kernel is new enough."""
    found = f"Linux {machine.release or 'unknown'}"
    newer = [kind for kind in machine.server.kinds if kind.linux > machine.kernel]
    if not newer:
        return Finding("kernel", found)
    needs = [f"ports on {kind.title} need Linux {kind.linux[0]}.{kind.linux[1]} or newer" for kind in newer]
    commands = ("# Install a newer kernel of your distribution, such as that of Debian's backports.",)
    return Finding("kernel", found, ", ".join(needs), commands, breaks=names(newer))


def server(machine: Machine) -> Finding:
    """Whether the server's program is there, runs, and is of the version of this package."""
    it = machine.server
    if it.path is None:
        return Finding("server", "not found", it.problem, ("pip install allosaur",), breaks_all=True)
    if it.problem:
        return Finding(
            "server", it.path, f"it does not run: {it.problem}", (f"{it.path} --version",), breaks_all=True
        )
    found = f"{it.path}, version {it.version or 'unknown'}"
    if it.package_version is not None and it.version != it.package_version:
        why = f"the Python package is of version {it.package_version}: they should be of one installation"
        return Finding("server", found, why, ("pip install --force-reinstall allosaur",))
    return Finding("server", found)


def sockets(machine: Machine) -> Iterator[Finding]:
    """Whether the kernel has the sockets of each kind of ports, and the server's program may open them."""
    for kind in machine.server.kinds:
        if kind.sockets:
            yield _sockets(machine, kind)


def _sockets(machine: Machine, kind: PortKind) -> Finding:
    lines = machine.text("proc/net/protocols").splitlines()
    protocols = {line.split()[0] for line in lines if line.strip()}
    if kind.protocol and protocols and kind.protocol not in protocols:
        why = f"ports on {kind.title} need a kernel that was built with {kind.kernel_option}"
        others = [other for other in machine.kinds_on(kind.on) if not other.protocol]
        remedy = f"# Use ports on {titles(others)}, or a kernel of your distribution."
        found = f"this kernel has no {kind.sockets}"
        return Finding(kind.title, found, why, (remedy,), breaks=(kind.name,))
    lacking = [name for name in kind.capabilities if not holds(machine, name)]
    if not lacking:
        return Finding(kind.title, f"the server may open {kind.sockets}")
    noun = "capability" if len(kind.capabilities) == 1 else "capabilities"
    why = f"ports on {kind.title} need the {noun} {', '.join(kind.capabilities)}"
    # Kinds that need the same and more do not work, either.
    broken = [other for other in machine.server.kinds if {*kind.capabilities} <= {*other.capabilities}]
    return Finding(
        kind.title,
        f"the server lacks {', '.join(lacking)}",
        why,
        _to_give(machine, kind.capabilities_given),
        breaks=names(broken),
    )


def dpdk(machine: Machine) -> Finding:
    """Whether the server was built with DPDK, and the kernel can hand cards to it."""
    kinds = machine.kinds_on(CARD)
    if not kinds:
        return Finding("DPDK", "not known, as the server's program does not say")
    if not all(kind.is_built for kind in kinds):
        why = "network cards by DPDK need a server that was built where libdpdk 22.11 or newer is installed"
        commands = ("sudo apt-get install libdpdk-dev", "make install  # in a checkout of Allosaur")
        return Finding("DPDK", "the server was built without", why, commands, breaks=names(kinds))
    if not machine.has("sys/bus/pci/drivers/vfio-pci"):
        why = "the kernel hands most network cards to DPDK by this driver (those of mlx4 and mlx5 need none)"
        load = "sudo modprobe vfio-pci"
        return Finding("DPDK", "the driver vfio-pci is not loaded", why, (load,), breaks=names(kinds))
    return Finding("DPDK", "the server was built with it, and the driver vfio-pci is loaded")


def holds(machine: Machine, name: str) -> bool:
    """Whether the server's program has a capability when this process starts it."""
    process = machine.process
    held = _bits(process.get("CapEff", ""))
    # A process that must not gain privileges gets none from a file; and none gets what its bounds leave out.
    if process.get("NoNewPrivs") != "1":
        held |= machine.server.capabilities & _bits(process.get("CapBnd", ""))
    wanted = {name, "CAP_SYS_ADMIN"} if name == "CAP_BPF" else {name}
    return any(held >> _CAPABILITIES[one] & 1 for one in wanted)


def _bits(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0


def _to_give(machine: Machine, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that gives the server's program capabilities."""
    if machine.is_container:
        options = " ".join(f"--cap-add={name.removeprefix('CAP_')}" for name in names)
        return (f"# Start the container with {options}",)
    path = machine.server.path or '"$(command -v allosaur-server)"'
    return (f"sudo setcap {','.join(names).lower()}+ep {path}",)
