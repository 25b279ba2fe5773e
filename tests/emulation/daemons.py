"""Daemons of Linux in front of emulated clients, for tests: each in a namespace with a segment of clients.

Nothing of the machine is used but the programs: a daemon has its own configuration, an empty /run, and a
log in the test's folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from allosaur.server import LocalServer

CLIENTS = 1000
HOST_IPV4 = "10.1.255.254"
HOST_IPV6 = "2001:db8:1::1"
PREFIX_IPV6 = "2001:db8:1::/64"
BATCH = 100
STOP_S = 10.0
PAUSE_S = 0.2
PATIENCE_S = 60.0
NEIGHBORS = 65_536
NEIGHBOR_LIMITS = [
    Path(f"/proc/sys/net/{family}/neigh/default/gc_thresh{number}")
    for family in ("ipv4", "ipv6")
    for number in (3, 2)
]
"""How many neighbors the kernel keeps at most, and beyond how many it looks for some to forget."""
# What a daemon leaves in /run goes with its namespace of mounts.
PRIVATE = 'mount -t tmpfs tmpfs /run && mkdir -p /run/lldpd /run/avahi-daemon /run/kea && exec "$@"'
PACKAGES = {
    "avahi-daemon": "avahi-daemon",
    "avahi-resolve": "avahi-utils",
    "dbus-daemon": "dbus-daemon",
    "dhcrelay": "isc-dhcp-relay",
    "dnsmasq": "dnsmasq-base",
    "ethtool": "ethtool",
    "freeradius": "freeradius",
    "hostapd": "hostapd",
    "hostapd_cli": "hostapd",
    "kea-dhcp4": "kea-dhcp4-server",
    "kea-dhcp6": "kea-dhcp6-server",
    "lldpcli": "lldpd",
    "lldpd": "lldpd",
    "nfcapd": "nfdump",
    "nfdump": "nfdump",
    "nft": "nftables",
    "pppd": "ppp",
    "pppoe-server": "pppoe",
    "radvd": "radvd",
    "smcrouted": "smcroute",
    "unbound": "unbound",
    "unbound-control": "unbound",
}


def path(tool: str) -> str:
    """Where a program is. Skips the test where it is not installed."""
    found = shutil.which(tool) or shutil.which(tool, path="/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"there is no `{tool}`: install {PACKAGES[tool]}")
    return found


class Daemon:
    """A program on a host while the ``with`` block lasts.

    ``ready`` is what its log says once it serves, ``environment`` has variables as "NAME=value".
    """

    def __init__(
        self, host: Machine, folder: Path, ready: str, *command: str, environment: Sequence[str] = ()
    ) -> None:
        self.name = Path(command[0]).name
        self._log = folder / f"{self.name}-{host.namespace}.log"
        self._host = host
        self._ready = ready
        # Ends with the test's process, however that ends; a profile of AppArmor knows no folder of tests.
        guard = ["setpriv", "--pdeathsig", "KILL"]
        if Path("/sys/kernel/security/apparmor/profiles").exists() and shutil.which("aa-exec"):
            guard += ["aa-exec", "-p", "unconfined", "--"]
        # Logs come line by line, though they go to a file.
        start = ["env", *environment, "stdbuf", "-oL", "-eL", path(command[0]), *command[1:]]
        self._command = [*guard, "sh", "-c", PRIVATE, "sh", *start]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Daemon:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it serves."""
        with self._log.open("ab") as log:
            begin = log.tell()
            self._process = self._host.start(*self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

        def is_ready() -> bool:
            assert self._process is not None
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {self.log()[-2000:]}")
            return re.search(self._ready, self.log()[begin:]) is not None

        self._host.doors.await_it(is_ready, f"{self.name} never was ready")

    def stop(self) -> None:
        """End it, as a system does."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=STOP_S)
        self._process = None

    def signal(self, number: int) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def log(self) -> str:
        """What it has said, over all its lives."""
        return self._log.read_text(encoding="utf-8", errors="replace")


@contextlib.contextmanager
def room_for_neighbors() -> Iterator[None]:
    """Let the kernel know more than its usual 1,024 neighbors, which all namespaces share.

    Without, tests take room from each other, and from all others. Whoever is the last puts back what was.
    """
    memory = Path(tempfile.gettempdir()) / "allosaur-neighbors"
    with memory.open("a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        for number, limit in enumerate(NEIGHBOR_LIMITS):
            if int(limit.read_text()) < NEIGHBORS:
                with Path(f"{memory}-{number}").open("w", encoding="ascii") as before:
                    before.write(limit.read_text())
                limit.write_text(str(NEIGHBORS))
        try:
            yield
        finally:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for number, limit in enumerate(NEIGHBOR_LIMITS):
                    before = Path(f"{memory}-{number}")
                    if before.exists():
                        limit.write_text(before.read_text())
                        before.unlink()


class Machine:
    """A namespace of the kernel that daemons run in."""

    def __init__(self, network: Any, doors: Any, name: str) -> None:
        self.network = network
        self.doors = doors
        self.namespace: str = network.namespace(name)

    def run(self, *command: str) -> str:
        """Run a command on the machine. Gives what it prints."""
        return str(self.network.run(self.namespace, *command))

    def write(self, path: str, text: str) -> None:
        """Write to a file below /proc/sys/net as the machine sees it."""
        self.network.write(self.namespace, f"/proc/sys/net/{path}", text)

    def start(self, *command: str, **options: Any) -> subprocess.Popen[Any]:
        """Start a command on the machine."""
        return subprocess.Popen(["ip", "netns", "exec", self.namespace, *command], **options)

    def daemon(self, folder: Path, ready: str, *command: str, environment: Sequence[str] = ()) -> Daemon:
        """A daemon on the machine, not started."""
        return Daemon(self, folder, ready, *command, environment=environment)

    def take(self, link: str) -> None:
        """Move an interface that is with us to the machine."""
        self.network.run(None, "ip", "link", "set", link, "netns", self.namespace)
        self.network.silence(self.namespace, link)
        self.run("ip", "link", "set", link, "up")


class Host(Machine):
    """10.1.255.254/16 and 2001:db8:1::1/64 before the emulated clients of a segment.

    ``near`` is our end of their link, ``link`` the host's.
    """

    def __init__(self, network: Any, doors: Any, name: str) -> None:
        super().__init__(network, doors, name)
        self.near, self.link = network.veth(self.namespace)
        self.run("ip", "address", "add", f"{HOST_IPV4}/16", "dev", self.link)
        for key in ("accept_ra", "router_solicitations", "autoconf", "accept_dad", "dad_transmits"):
            self.write(f"ipv6/conf/{self.link}/{key}", "0")
        self.write(f"ipv6/conf/{self.link}/disable_ipv6", "0")
        self.run("ip", "address", "add", f"{HOST_IPV6}/64", "dev", self.link, "nodad")

    def uplink(self, network: Any, name: str) -> tuple[Machine, str, str]:
        """Route to another machine: the host is 10.2.0.1/24 there, the machine 10.2.0.2.

        Gives the machine, its end of the link and the host's.
        """
        machine = Machine(network, self.doors, name)
        ours, theirs = network.veth(machine.namespace)
        self.take(ours)
        self.run("ip", "address", "add", "10.2.0.1/24", "dev", ours)
        machine.run("ip", "address", "add", "10.2.0.2/24", "dev", theirs)
        machine.run("ip", "route", "add", "default", "via", "10.2.0.1")
        self.write("ipv4/ip_forward", "1")
        return machine, theirs, ours


def across(network: Any, host: Host) -> tuple[str, str, tuple[str, str]]:
    """Put a namespace between a host and its clients, for a bad link.

    Gives the end for a port, the namespace and its two ends.
    """
    wire = Machine(network, host.doors, "wire")
    near, far = network.veth(wire.namespace)
    wire.take(host.near)
    # Frames whose checksums are left to a card do not fit the link.
    host.run(path("ethtool"), "-K", host.link, "tx", "off")
    return near, wire.namespace, (far, host.near)


class Segment:
    """Emulated clients on a port, by numbers from 1 on, and what they have got."""

    def __init__(self, door: Any, doors: Any, **plugins: Any) -> None:
        self.door = door
        self.doors = doors
        self.tunnel = door.add_namespace(0, **plugins)

    def add(self, numbers: Iterable[int], plugins: Any, **fields: Any) -> None:
        """Add clients. Plugins and fields are those of all, or functions of a client's number."""

        def of(what: Any, number: int) -> Any:
            return what(number) if callable(what) else what

        clients = [
            {
                "mac": self.doors.mac(number),
                "plugs": of(plugins, number),
                **{name: of(value, number) for name, value in fields.items()},
            }
            for number in numbers
        ]
        # A daemon's socket has room for some hundred frames, so they do not come all at once.
        for first in range(0, len(clients), BATCH):
            self.door.call("ctx_client_add", tun=self.tunnel, clients=clients[first : first + BATCH])

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove clients."""
        self.door.call("ctx_client_remove", tun=self.tunnel, macs=self.macs(numbers))

    def macs(self, numbers: Iterable[int]) -> list[list[int]]:
        """MAC addresses as requests have them."""
        return [self.doors.mac(number) for number in numbers]

    def infos(self, numbers: Iterable[int]) -> list[dict[str, Any]]:
        """All about clients."""
        found: list[dict[str, Any]] = self.door.call(
            "ctx_client_get_info", tun=self.tunnel, macs=self.macs(numbers)
        )
        return found

    def addresses(self, numbers: Iterable[int], field: str = "ipv4") -> dict[str, bytes]:
        """The addresses of clients by MAC address, of those that have one."""
        infos = self.infos(numbers)
        return {text(info["mac"]): bytes(info[field]) for info in infos if any(info[field])}

    def await_addresses(self, numbers: Sequence[int], field: str = "ipv4") -> dict[str, bytes]:
        """Wait until all these clients have an address."""
        return {
            text(self.doors.mac(number)): address
            for number, address in self.await_each(numbers, lambda some: self._fields(some, field)).items()
        }

    def _fields(self, numbers: Sequence[int], field: str) -> list[bytes | None]:
        return [bytes(info[field]) if any(info[field]) else None for info in self.infos(numbers)]

    def await_each(
        self, numbers: Sequence[int], look: Callable[[Sequence[int]], Sequence[Any]]
    ) -> dict[int, Any]:
        """Look at clients until there is something to see of each, and give it by their numbers.

        Clients and their requests share a thread: who asks without a pause, or for all each time, slows
        down what he waits for.
        """
        found: dict[int, Any] = {}
        # A daemon that serves ten times as many takes ten times as long, at least.
        until = time.monotonic() + PATIENCE_S * max(1, len(numbers) / CLIENTS)
        while missing := [number for number in numbers if number not in found]:
            assert time.monotonic() < until, f"still waiting for {len(missing)} clients, as {missing[:5]}"
            time.sleep(PAUSE_S)
            seen = zip(missing, look(missing), strict=True)
            found.update({number: what for number, what in seen if what})
        return {number: found[number] for number in numbers}

    def await_gateways(self, numbers: Sequence[int]) -> None:
        """Wait until all these clients know the MAC address of their gateway."""
        self.await_each(
            numbers, lambda some: [info["dgw"] and info["dgw"]["resolve"] for info in self.infos(some)]
        )

    def each(self, method: str, numbers: Iterable[int], **params: Any) -> list[Any]:
        """Ask something of each client, in one message. Parameters may be functions of a client's number."""
        requests = [
            self.door.request(
                method,
                tun=self.tunnel,
                mac=self.doors.mac(number),
                **{name: value(number) if callable(value) else value for name, value in params.items()},
            )
            for number in numbers
        ]
        replies = self.door.ask(requests)
        assert all("result" in reply for reply in replies), replies[:3]
        return [reply["result"] for reply in replies]

    def counters(self, method: str, numbers: Iterable[int]) -> list[dict[str, int]]:
        """The counters of a plugin of each client, zeros left out."""
        found = self.each(method, numbers)
        return [{name: value for table in one.values() for name, value in table.items()} for one in found]

    def agree(self, theirs: Callable[[], Any], ours: Any) -> None:
        """Wait until a daemon's table, which may be written late, is as it should be."""

        until = time.monotonic() + PATIENCE_S
        while theirs() != ours:
            assert time.monotonic() < until, "the daemon's table never was ours"
            time.sleep(PAUSE_S)

    def await_counters(self, method: str, numbers: Sequence[int], **least: int) -> list[dict[str, int]]:
        """Wait until counters of every client have grown to these values."""

        def grown(some: Sequence[int]) -> list[dict[str, int] | None]:
            counters = self.counters(method, some)
            return [
                one if all(one.get(name, 0) >= value for name, value in least.items()) else None
                for one in counters
            ]

        return list(self.await_each(numbers, grown).values())


@contextlib.contextmanager
def segment(doors: Any, near: str, **plugins: Any) -> Iterator[Segment]:
    """A server with emulated clients at the near end of a link, with plugins of their namespace."""
    with (
        LocalServer(ports=[f"af_packet:{near}"], emu=True) as server,
        doors.Door(server.emu_port) as door,
    ):
        yield Segment(door, doors, **plugins)


def text(address: Iterable[int]) -> str:
    """A MAC address as daemons write it."""
    return bytes(address).hex(":")


def numbers(count: int = CLIENTS) -> range:
    """The numbers of so many clients."""
    return range(1, count + 1)
