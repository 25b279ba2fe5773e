"""A machine by its files under /proc and /sys, or a copy of them: the kernel is not asked otherwise."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from allosaur.cli.doctor._kinds import PortKind
from allosaur.cli.doctor._server import Server

_TREE_DEPTH_MAX = 32
"""Control groups deeper than this are not looked at."""


class Machine:
    """The machine whose / is at `root`, and the server's program that would run on it."""

    def __init__(self, root: Path, server: Server) -> None:
        self.root = root
        self.server = server

    def kinds_on(self, base: str) -> list[PortKind]:
        """Return the kinds of ports on memory, interfaces or cards."""
        return [kind for kind in self.server.kinds if kind.on == base]

    def text(self, path: str) -> str:
        """Return what a file has, without the space around it; nothing of one that cannot be read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def number(self, path: str) -> int | None:
        """Return the whole number that a file has."""
        return int(self.text(path)) if re.fullmatch(r"-?\d+", self.text(path)) else None

    def names(self, path: str) -> list[str]:
        """Return what a folder has, in order: `node2` before `node10`."""
        try:
            names = [one.name for one in (self.root / path).iterdir()]
        except OSError:
            return []
        return sorted(names, key=lambda name: (re.sub(r"\d+", "", name), *map(int, re.findall(r"\d+", name))))

    def has(self, path: str) -> bool:
        """Whether a file or a folder is there."""
        return (self.root / path).exists()

    def behind_link(self, path: str) -> str | None:
        """Return the last name of what a link leads to."""
        try:
            return (self.root / path).readlink().name
        except OSError:
            return None

    @cached_property
    def release(self) -> str:
        """What the kernel calls itself, such as `6.1.0-13-amd64`."""
        return self.text("proc/sys/kernel/osrelease")

    @cached_property
    def kernel(self) -> tuple[int, int]:
        """The kernel's version; (0, 0) if it does not say."""
        match = re.match(r"(\d+)\.(\d+)", self.release)
        return (int(match[1]), int(match[2])) if match else (0, 0)

    @cached_property
    def process(self) -> dict[str, str]:
        """What the kernel says of this process: proc(5), /proc/pid/status."""
        lines = self.text("proc/self/status").splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    @cached_property
    def cpu_flags(self) -> set[str]:
        """What the first CPU can do, as Linux calls it."""
        match = re.search(r"^(?:flags|Features)\s*:(.*)$", self.text("proc/cpuinfo"), re.MULTILINE)
        return set(match[1].split()) if match else set()

    @property
    def is_virtual(self) -> bool:
        """Whether it is a virtual machine."""
        return "hypervisor" in self.cpu_flags

    @property
    def is_container(self) -> bool:
        """Whether this process is in a container."""
        return any(map(self.has, (".dockerenv", "run/.containerenv", "run/systemd/container")))

    @cached_property
    def cpus(self) -> list[int]:
        """The CPUs that are switched on."""
        return cpu_list(self.text("sys/devices/system/cpu/online"))

    @cached_property
    def nodes(self) -> dict[int, list[int]]:
        """The CPUs of each NUMA node."""
        folder = "sys/devices/system/node"
        names = [name for name in self.names(folder) if re.fullmatch(r"node\d+", name)]
        return {int(name[4:]): cpu_list(self.text(f"{folder}/{name}/cpulist")) for name in names}

    def cpu_quota(self) -> float | None:
        """Return how many CPUs' time the control groups of this process may use; `None` if all."""
        path = next(
            (line[3:] for line in self.text("proc/self/cgroup").splitlines() if line[:3] == "0::"), "/"
        )
        folder, quota = Path(path.lstrip("/")), None
        for group in [folder, *folder.parents][:_TREE_DEPTH_MAX]:
            words = self.text(f"sys/fs/cgroup/{group}/cpu.max").split()
            if len(words) == 2 and all(word.isdigit() for word in words):
                share = int(words[0]) / int(words[1])
                quota = share if quota is None else min(quota, share)
        return quota

    def at_boot(self, topic: str, parameters: str) -> tuple[str, ...]:
        """Return the commands that give the kernel parameters at its next start."""
        if self.is_container:
            return (f"# On the host, on the kernel's command line: {parameters}",)
        if self.has("usr/sbin/update-grub"):
            line = f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {parameters}"'
            file = f"/etc/default/grub.d/allosaur-{topic}.cfg"
            return (
                f"echo '{line}' | sudo install -Dm 644 /dev/stdin {file}",
                "sudo update-grub",
                "sudo reboot",
            )
        if self.has("usr/sbin/grubby"):
            return (f'sudo grubby --update-kernel=ALL --args="{parameters}"', "sudo reboot")
        return (f"# Add to the kernel's command line, and start it again: {parameters}",)


def cpu_list(text: str) -> list[int]:
    """Read a list of CPUs as Linux writes it: `0-3,8`."""
    ranges = [match.groups() for match in re.finditer(r"(\d+)(?:-(\d+))?", text)]
    return [cpu for first, last in ranges for cpu in range(int(first), int(last or first) + 1)]


def cpus_text(cpus: list[int]) -> str:
    """Write a list of CPUs as Linux reads it: `0-3,8`."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][-1] + 1:
            ranges[-1][1:] = [cpu]
        else:
            ranges.append([cpu])
    return ",".join("-".join(map(str, one)) for one in ranges)
