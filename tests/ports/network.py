"""Networks in namespaces of the kernel, for tests: pairs of veth, and what the kernel counted on them.

All names begin with ``alo`` and the number of this process, so that what a killed run left behind is known,
and is removed by the next one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

PREFIX = "alo"


def why_not() -> str | None:
    """What is missing on this machine, or None when networks can be made."""
    if shutil.which("ip") is None:
        return "there is no `ip`: install iproute2"
    if os.geteuid() != 0:
        return "network namespaces need root: run the tests with sudo"
    probe = f"{PREFIX}{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return f"this machine makes no network namespaces: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
    return None


class Network:
    """Namespaces and the veth pairs between them; gone when the ``with`` block ends, also by an error."""

    def __init__(self) -> None:
        self._name = f"{PREFIX}{os.getpid()}"
        self._namespaces: list[str] = []
        self._links: list[str] = []

    def __enter__(self) -> Network:
        _remove_leftovers()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for namespace in self._namespaces:
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)
        for link in self._links:
            subprocess.run(["ip", "link", "del", link], capture_output=True, check=False)

    def namespace(self, name: str) -> str:
        """Make a namespace. Gives its full name."""
        full = f"{self._name}-{name}"
        _ip("netns", "add", full)
        self._namespaces.append(full)
        self.run(full, "ip", "link", "set", "lo", "up")
        return full

    def veth(self, far: str | None = None, mtu: int = 1500) -> tuple[str, str]:
        """Join two new interfaces; the second lies in namespace ``far`` if one is given. Gives their names.

        Both are up and silent: the kernel sends nothing by itself, so that what is counted is what was sent.
        """
        number = len(self._links)
        near, other = f"{self._name}n{number}", f"{self._name}f{number}"
        _ip("link", "add", near, "mtu", str(mtu), "type", "veth", "peer", "name", other, "mtu", str(mtu))
        self._links.append(near)
        if far is not None:
            _ip("link", "set", other, "netns", far)
        for namespace, link in [(None, near), (far, other)]:
            self.silence(namespace, link)
            self.run(namespace, "ip", "link", "set", link, "up")
        return near, other

    def run(self, namespace: str | None, *command: str, typed: str | None = None) -> str:
        """Run a command in a namespace, or in that of the tests, with what is typed. Gives what it prints."""
        done = _run(namespace, command, typed)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def try_run(self, namespace: str | None, *command: str, typed: str | None = None) -> bool:
        """Run a command that may fail. Gives whether it did what it should."""
        return _run(namespace, command, typed).returncode == 0

    def facts(self, namespace: str | None, link: str) -> dict[str, Any]:
        """What the kernel says of an interface, its counters under "stats64"."""
        text = self.run(namespace, "ip", "-j", "-d", "-s", "link", "show", "dev", link)
        facts: dict[str, Any] = json.loads(text)[0]
        return facts

    def received(self, namespace: str | None, link: str) -> tuple[int, int]:
        """Packets and bytes that the kernel received on an interface."""
        counters = self.facts(namespace, link)["stats64"]["rx"]
        return counters["packets"], counters["bytes"]

    def sent(self, namespace: str | None, link: str) -> tuple[int, int]:
        """Packets and bytes that the kernel sent on an interface."""
        counters = self.facts(namespace, link)["stats64"]["tx"]
        return counters["packets"], counters["bytes"]

    def mac(self, namespace: str | None, link: str) -> str:
        """The MAC address of an interface."""
        return str(self.facts(namespace, link)["address"])

    def router(self, name: str, links: int = 2) -> tuple[str, list[tuple[str, str]]]:
        """A Linux router with so many pairs of veth. Gives its namespace, and (our end, its end) of each.

        On pair n the router is 10.0.n.1/24. Who lives at 10.0.n.2 has the MAC address of our end.
        """
        router = self.namespace(name)
        pairs = [self.veth(router) for _ in range(links)]
        for number, (near, far) in enumerate(pairs):
            self.run(router, "ip", "address", "add", f"10.0.{number}.1/24", "dev", far)
            neighbor = ["ip", "neighbor", "add", f"10.0.{number}.2", "lladdr", self.mac(None, near)]
            self.run(router, *neighbor, "dev", far)
        self.write(router, "/proc/sys/net/ipv4/ip_forward", "1")
        return router, pairs

    def write(self, namespace: str | None, path: str, text: str) -> None:
        """Write to a file below /proc/sys as a namespace sees it."""
        self.run(namespace, "sh", "-c", f"echo {text} > {path}")

    def silence(self, namespace: str | None, link: str) -> None:
        """Let the kernel send nothing of its own on an interface."""
        switch = f"/proc/sys/net/ipv6/conf/{link}/disable_ipv6"
        if Path("/proc/sys/net/ipv6").exists():
            self.write(namespace, switch, "1")


def _run(
    namespace: str | None, command: Sequence[str], typed: str | None = None
) -> subprocess.CompletedProcess[str]:
    inside = ["ip", "netns", "exec", namespace] if namespace else []
    return subprocess.run([*inside, *command], input=typed, capture_output=True, text=True, check=False)


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def _remove_leftovers() -> None:
    """Remove what test runs that no longer live have made."""
    for line in _ip("netns", "list").splitlines():
        _remove_if_dead(line.split()[0], ["netns", "del"])
    for link in json.loads(_ip("-j", "link", "show")):
        _remove_if_dead(link["ifname"], ["link", "del"])


def _remove_if_dead(name: str, command: Sequence[str]) -> None:
    if not name.startswith(PREFIX):
        return
    digits = name[len(PREFIX) :]
    maker = digits[: len(digits) - len(digits.lstrip("0123456789"))]
    if maker and not Path(f"/proc/{maker}").exists():
        subprocess.run(["ip", *command, name], capture_output=True, check=False)
