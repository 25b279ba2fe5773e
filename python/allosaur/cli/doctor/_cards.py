"""Findings about network cards and interfaces, and what stands between them and memory."""

from __future__ import annotations

from collections.abc import Iterator

from allosaur.cli.doctor import _kinds
from allosaur.cli.doctor._finding import Finding
from allosaur.cli.doctor._kinds import CARD, INTERFACE
from allosaur.cli.doctor._machine import Machine

_NETWORK_CLASS = "0x02"
"""What PCI devices for networks begin their class with."""
_ETHERNET = 1
"""ARPHRD_ETHER of linux/if_arp.h."""
_IS_UP = 1
"""IFF_UP of linux/if.h."""
_USERSPACE = ("vfio-pci", "uio_pci_generic", "igb_uio")
"""Drivers that hand a card to DPDK."""
_SHOWN_MAX = 5
"""Interfaces of software are named up to this number."""


def interfaces(machine: Machine) -> list[Finding]:
    """Each network card, and the interfaces of software together."""
    folder = "sys/class/net"
    names = [name for name in machine.names(folder) if machine.number(f"{folder}/{name}/type") == _ETHERNET]
    hardware = [name for name in names if machine.has(f"{folder}/{name}/device")]
    software = [name for name in names if name not in hardware]
    findings = [*(_interface(machine, name) for name in hardware), *_cards_without_interface(machine)]
    if software:
        shown = ", ".join(software[:_SHOWN_MAX]) + (", ..." if len(software) > _SHOWN_MAX else "")
        findings.append(Finding("interfaces", f"{len(software)} of software: {shown}"))
    if not findings:
        why = "there is nothing for ports but memory; a pair of veth is two interfaces that are joined"
        commands = (
            "sudo ip link add tg0 type veth peer name tg1",
            "sudo ip link set tg0 up; sudo ip link set tg1 up",
        )
        findings.append(
            Finding(
                "interfaces",
                "none that carries Ethernet",
                why,
                commands,
                breaks=_kinds.names(machine.kinds_on(INTERFACE)),
            )
        )
    return findings


def _interface(machine: Machine, name: str) -> Finding:
    folder = f"sys/class/net/{name}"
    is_up = bool(int(machine.text(f"{folder}/flags") or "0", 16) & _IS_UP)
    found = ", ".join(_words(machine, name, is_up))
    slot = _narrow_slot(machine, f"{folder}/device")
    if slot:
        why = (
            "the slot carries less than the card: at full rate it cannot hand packets over. Use a wider slot"
        )
        remedy = f"# Look at LnkCap and LnkSta: sudo lspci -vv -s {machine.behind_link(f'{folder}/device')}"
        return Finding(f"card {name}", f"{found}, {slot}", why, (remedy,))
    if not is_up:
        why = "an interface must be up to be a port; a card for DPDK need not be"
        return Finding(f"card {name}", found, why, (f"sudo ip link set {name} up",))
    return Finding(f"card {name}", found)


def _words(machine: Machine, name: str, is_up: bool) -> Iterator[str]:
    folder = f"sys/class/net/{name}"
    yield machine.behind_link(f"{folder}/device/driver") or "unknown driver"
    has_link = machine.text(f"{folder}/carrier") == "1"
    yield "link up" if is_up and has_link else "no link" if is_up else "off"
    speed = machine.number(f"{folder}/speed")
    if speed is not None and speed > 0:
        yield f"{speed / 1000:g} Gbit/s"
    queues = machine.names(f"{folder}/queues")
    receive = sum(1 for one in queues if one.startswith("rx-"))
    if queues:
        yield f"{receive} receive and {len(queues) - receive} transmit queues"
    node = machine.number(f"{folder}/device/numa_node")
    if node is not None and len(machine.nodes) > 1:
        yield f"node {node}" if node >= 0 else "node unknown"
    if _is_default_route(machine, name):
        yield "carries the default route"


def _is_default_route(machine: Machine, name: str) -> bool:
    rows = [line.split() for line in machine.text("proc/net/route").splitlines()[1:]]
    return any(len(row) > 1 and row[0] == name and row[1] == "00000000" for row in rows)


def _narrow_slot(machine: Machine, folder: str) -> str:
    """Return how the link of a PCI Express card falls short of the card; nothing if it does not."""
    now, most = (machine.number(f"{folder}/{which}_link_width") for which in ("current", "max"))
    if now and most and now < most:
        return f"{now} of its {most} PCI Express lanes"
    now_speed, most_speed = (machine.text(f"{folder}/{which}_link_speed") for which in ("current", "max"))
    if now_speed and most_speed and _transfers(now_speed) < _transfers(most_speed):
        return f"PCI Express at {now_speed} of {most_speed}"
    return ""


def _transfers(text: str) -> float:
    """Read `8.0 GT/s PCIe`; what is not known is more than any."""
    try:
        return float(text.split()[0])
    except ValueError:
        return float("inf")


def _cards_without_interface(machine: Machine) -> Iterator[Finding]:
    folder = "sys/bus/pci/devices"
    for address in machine.names(folder):
        device = f"{folder}/{address}"
        if not machine.text(f"{device}/class").startswith(_NETWORK_CLASS) or machine.has(f"{device}/net"):
            continue
        driver = machine.behind_link(f"{device}/driver")
        # virtio's interface is one level below its PCI device.
        if any(machine.has(f"{device}/{name}/net") for name in machine.names(device) if name[:6] == "virtio"):
            continue
        if driver in _USERSPACE:
            yield Finding(f"card {address}", f"{driver} hands it to DPDK")
        elif driver is None:
            why = "no driver has it: neither the kernel nor DPDK can use it"
            yield Finding(f"card {address}", "no driver", why, (f"allosaur ports prepare {address}",))


def iommu(machine: Machine) -> Finding:
    """Whether cards can be handed to DPDK safely, and what the kernel's own drivers pay for it."""
    groups = machine.names("sys/kernel/iommu_groups")
    broken = _kinds.names(machine.kinds_on(CARD))
    vendor_is_intel = "GenuineIntel" in machine.text("proc/cpuinfo")
    if not groups and machine.is_virtual:
        if machine.text("sys/module/vfio/parameters/enable_unsafe_noiommu_mode") == "Y":
            return Finding("IOMMU", "none in this virtual machine; vfio goes without")
        why = "the driver vfio-pci hands no card to DPDK without an IOMMU, unless it is told to"
        file = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
        commands = ("sudo modprobe vfio enable_unsafe_noiommu_mode=1", f"echo 1 | sudo tee {file}")
        return Finding("IOMMU", "none in this virtual machine", why, commands, breaks=broken)
    if not groups:
        why = (
            "the driver vfio-pci hands no card to DPDK without; the firmware must allow it too (VT-d, AMD-Vi)"
        )
        parameters = "intel_iommu=on iommu=pt" if vendor_is_intel else "iommu=pt"
        return Finding("IOMMU", "off", why, machine.at_boot("iommu", parameters), breaks=broken)
    translated = _translated(machine)
    if translated:
        why = "for each packet the kernel's drivers ask the IOMMU for an address; iommu=pt spares them that"
        found = f"on; translates for {', '.join(translated)}"
        return Finding("IOMMU", found, why, machine.at_boot("iommu", "iommu=pt"))
    return Finding("IOMMU", f"on, {len(groups)} groups")


def _translated(machine: Machine) -> list[str]:
    """Return the interfaces whose addresses the IOMMU translates (`DMA`, `DMA-FQ`; not `identity`)."""
    folder = "sys/class/net"
    kinds = {name: machine.text(f"{folder}/{name}/device/iommu_group/type") for name in machine.names(folder)}
    return [name for name, kind in kinds.items() if kind.startswith("DMA")]
