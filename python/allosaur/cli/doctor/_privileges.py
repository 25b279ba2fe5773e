"""Findings about the kernel and the server's program: what they can do, and what the program may."""

from __future__ import annotations

from allosaur.cli.doctor._finding import AF_XDP, DPDK, INTERFACES, KINDS, Finding
from allosaur.cli.doctor._machine import Machine

_CAPABILITIES = {
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_IPC_LOCK": 14,
    "CAP_SYS_ADMIN": 21,
    "CAP_BPF": 39,
}
_OF_PACKET_SOCKETS = ("CAP_NET_RAW",)
_OF_XDP_SOCKETS = ("CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_BPF")
_GIVEN_FOR_XDP = (*_OF_XDP_SOCKETS, "CAP_IPC_LOCK")
_PACKET_SOCKETS_KERNEL = (4, 20)
_XDP_SOCKETS_KERNEL = (5, 9)


def kernel(machine: Machine) -> Finding:
    """Whether the kernel is new enough."""
    found = f"Linux {machine.release or 'unknown'}"
    commands = ("# Install a newer kernel of your distribution, such as that of Debian's backports.",)
    if machine.kernel < _PACKET_SOCKETS_KERNEL:
        why = "ports on interfaces need Linux 4.20 or newer, those on AF_XDP 5.9"
        return Finding("kernel", found, why, commands, breaks=INTERFACES)
    if machine.kernel < _XDP_SOCKETS_KERNEL:
        return Finding("kernel", found, "ports on AF_XDP need Linux 5.9 or newer", commands, breaks=(AF_XDP,))
    return Finding("kernel", found)


def server(machine: Machine) -> Finding:
    """Whether the server's program is there, runs, and is of the version of this package."""
    it = machine.server
    if it.path is None:
        return Finding("server", "not found", it.problem, ("pip install allosaur",), breaks=KINDS)
    if it.problem:
        return Finding(
            "server", it.path, f"it does not run: {it.problem}", (f"{it.path} --version",), breaks=KINDS
        )
    found = f"{it.path}, version {it.version or 'unknown'}"
    if it.package_version is not None and it.version != it.package_version:
        why = f"the Python package is of version {it.package_version}: they should be of one installation"
        return Finding("server", found, why, ("pip install --force-reinstall allosaur",))
    return Finding("server", found)


def packet_sockets(machine: Machine) -> Finding:
    """Whether the server's program may open packet sockets."""
    lacking = _lacking(machine, _OF_PACKET_SOCKETS)
    if not lacking:
        return Finding("AF_PACKET", "the server may open packet sockets")
    why = f"ports on interfaces need the capability {lacking[0]}"
    return Finding(
        "AF_PACKET", _not_held(lacking), why, _to_give(machine, _OF_PACKET_SOCKETS), breaks=INTERFACES
    )


def xdp_sockets(machine: Machine) -> Finding:
    """Whether the kernel has XDP sockets, and the server's program may open them."""
    lines = machine.text("proc/net/protocols").splitlines()
    protocols = {line.split()[0] for line in lines if line.strip()}
    if protocols and "XDP" not in protocols:
        why = "ports on AF_XDP need a kernel that was built with CONFIG_XDP_SOCKETS"
        remedy = "# Use ports on AF_PACKET, or a kernel of your distribution."
        return Finding("AF_XDP", "this kernel has no XDP sockets", why, (remedy,), breaks=(AF_XDP,))
    lacking = _lacking(machine, _OF_XDP_SOCKETS)
    if not lacking:
        return Finding("AF_XDP", "the server may open XDP sockets")
    why = f"ports on AF_XDP need the capabilities {', '.join(_OF_XDP_SOCKETS)}"
    return Finding("AF_XDP", _not_held(lacking), why, _to_give(machine, _GIVEN_FOR_XDP), breaks=(AF_XDP,))


def dpdk(machine: Machine) -> Finding:
    """Whether the server was built with DPDK, and the kernel can hand cards to it."""
    if machine.server.has_dpdk is None:
        return Finding("DPDK", "not known, as the server's program does not say")
    if not machine.server.has_dpdk:
        why = "network cards by DPDK need a server that was built where libdpdk 22.11 or newer is installed"
        commands = ("sudo apt-get install libdpdk-dev", "make install  # in a checkout of Allosaur")
        return Finding("DPDK", "the server was built without", why, commands, breaks=(DPDK,))
    if not machine.has("sys/bus/pci/drivers/vfio-pci"):
        why = "the kernel hands most network cards to DPDK by this driver (those of mlx4 and mlx5 need none)"
        return Finding(
            "DPDK", "the driver vfio-pci is not loaded", why, ("sudo modprobe vfio-pci",), breaks=(DPDK,)
        )
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


def _lacking(machine: Machine, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if not holds(machine, name)]


def _not_held(names: list[str]) -> str:
    return f"the server lacks {', '.join(names)}"


def _to_give(machine: Machine, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that gives the server's program capabilities."""
    if machine.is_container:
        options = " ".join(f"--cap-add={name.removeprefix('CAP_')}" for name in names)
        return (f"# Start the container with {options}",)
    path = machine.server.path or '"$(command -v allosaur-server)"'
    return (f"sudo setcap {','.join(names).lower()}+ep {path}",)
