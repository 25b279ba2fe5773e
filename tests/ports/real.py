"""Real TCP stacks for tests: hosts of the kernel, nginx, curl, what the kernel counted, what passed."""

from __future__ import annotations

import contextlib
import hashlib
import random
import shutil
import signal
import struct
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

TOOLS = {"nginx": "nginx", "curl": "curl", "wrk": "wrk", "tcpdump": "tcpdump", "nstat": "iproute2"}
READY_S = 10.0


def why_not() -> str | None:
    """What is missing on this machine for talks with real stacks, or None."""
    missing = {tool: package for tool, package in TOOLS.items() if _path(tool) is None}
    if missing:
        tools = " and no ".join(f"`{tool}`" for tool in missing)
        return f"there is no {tools}: install {' '.join(sorted(set(missing.values())))}"
    return None


def _path(tool: str) -> str | None:
    return shutil.which(tool) or shutil.which(tool, path="/usr/sbin:/sbin")


def body(size: int, seed: int = 1) -> bytes:
    """So many bytes that no mistake repeats by chance."""
    return random.Random(seed).randbytes(size)


class Host:
    """A host of the kernel behind one of our ports: it is 10.0.n.2, our port 10.0.n.1.

    Over IPv6 it is 2001:db8:n::a00:n02, what a profile makes of 2001:db8:n:: and 10.0.n.2. Whom it does not
    know, it sends to our port. ``network`` is a ``network.Network``, which removes it.
    """

    def __init__(self, network: Any, name: str, number: int = 0, offloads: bool = True) -> None:
        self.network = network
        self.number = number
        self.namespace: str = network.namespace(name)
        self.near, self.far = network.veth(self.namespace)
        self.address = f"10.0.{number}.2"
        self.port_address = f"10.0.{number}.1"
        self.prefix = f"2001:db8:{number}::"
        self.address_v6 = f"{self.prefix}a00:{number:x}02"
        if not offloads:
            self.run("ethtool", "-K", self.far, "tx", "off", "gso", "off", "tso", "off", "gro", "off")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", self.far)
        self.run("ip", "route", "add", "default", "via", self.port_address)
        for name in ("accept_ra", "router_solicitations", "autoconf", "accept_dad", "dad_transmits"):
            self.write(f"ipv6/conf/{self.far}/{name}", "0")
        self.write(f"ipv6/conf/{self.far}/disable_ipv6", "0")
        # The whole prefix is its own, so that clients and servers of profiles are its neighbors.
        self.run("ip", "address", "add", f"{self.address_v6}/64", "dev", self.far, "nodad")
        gateway = f"{self.prefix}1"
        mac = network.mac(None, self.near)
        self.run("ip", "neighbor", "add", gateway, "lladdr", mac, "dev", self.far)
        self.run("ip", "route", "add", "default", "via", gateway, "dev", self.far)

    def run(self, *command: str) -> str:
        """Run a command on the host. Gives what it prints."""
        return str(self.network.run(self.namespace, *command))

    def write(self, path: str, text: str) -> None:
        """Write to a file below /proc/sys/net as the host sees it."""
        self.network.write(self.namespace, f"/proc/sys/net/{path}", text)

    def start(self, *command: str, **options: Any) -> subprocess.Popen[Any]:
        """Start a command on the host."""
        return subprocess.Popen(["ip", "netns", "exec", self.namespace, *command], **options)

    def counted(self) -> dict[str, int]:
        """What its TCP counted since it is there, by the names of ``nstat``: "TcpPassiveOpens", ..."""
        words = (line.split() for line in self.run("nstat", "-asz").splitlines())
        return {word[0]: int(word[1]) for word in words if word and word[0].startswith("Tcp")}

    def open_connections(self) -> int:
        """Connections of the host that are not over; those in TIME-WAIT are."""
        lines = self.run("ss", "-Htan", "exclude", "listening", "exclude", "time-wait").splitlines()
        return len(lines)


class Across:
    """A host of the kernel behind a bad link: the link's ends, between the host and our port."""

    def __init__(self, network: Any, host: Any) -> None:
        self.space = network.namespace("link")
        # Our port gets a new interface; what the host was joined to goes to the link.
        self.near, far = network.veth(self.space)
        network.run(None, "ip", "link", "set", host.near, "netns", self.space)
        network.silence(self.space, host.near)
        network.run(self.space, "ip", "link", "set", host.near, "up")
        self.ends = (far, host.near)
        host.near = self.near
        host.run(
            "ip",
            "neighbor",
            "replace",
            f"{host.prefix}1",
            "lladdr",
            network.mac(None, host.near),
            "dev",
            host.far,
        )


class Behind(Host):
    """A host of the kernel behind link n of a ``device.Router``: it is 10.0.n.2, where our port n was."""

    def __init__(self, network: Any, name: str, router: Any, link: int = 1) -> None:
        self.network = network
        self.number = link
        self.namespace: str = network.namespace(name)
        self.far: str = router.ports[link]
        self.address = f"10.0.{link}.2"
        network.run(None, "ip", "link", "set", self.far, "netns", self.namespace)
        network.silence(self.namespace, self.far)
        self.run("ip", "link", "set", self.far, "up")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", self.far)
        self.run("ip", "route", "add", "default", "via", f"10.0.{link}.1")


class Nginx:
    """nginx on a host, with its own configuration in a folder of its own, while the ``with`` block lasts.

    It serves ``files`` by name, and logs each request: "URI status bytes-sent X-Bytes". With ``tls``, a
    certificate and its key, it serves them at port 443, too.
    """

    def __init__(
        self, host: Host, folder: Path, files: dict[str, bytes], tls: tuple[Path, Path] | None = None
    ) -> None:
        self._host = host
        self._folder = folder
        self._process: subprocess.Popen[Any] | None = None
        self.files = files
        (folder / "files").mkdir()
        for name, content in files.items():
            (folder / "files" / name).write_bytes(content)
        temporary = [
            f"{kind}_temp_path {folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        ]
        lines = [
            "daemon off; user root; worker_processes 1;",
            f"pid {folder}/pid; error_log {folder}/error.log;",
            "events { worker_connections 8192; }",
            "http {",
            "log_format plain '$request_uri $status $bytes_sent $http_x_bytes';",
            f"access_log {folder}/access.log plain buffer=256k flush=1s;",
            # All that is in front of a body has the same length each time.
            "server_tokens off; etag off; sendfile on; tcp_nopush on; keepalive_requests 1000000;",
            *temporary,
            *([f"ssl_certificate {tls[0]}; ssl_certificate_key {tls[1]};"] if tls else []),
            "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:s:4m;" if tls else "",
            f"server {{ listen 443 ssl backlog=8192; root {folder}/files; }}" if tls else "",
            f"server {{ listen 80 backlog=8192; listen [::]:80 backlog=8192; root {folder}/files; }}",
            "}",
        ]
        (folder / "nginx.conf").write_text("\n".join(lines), encoding="utf-8")

    def __enter__(self) -> Nginx:
        words = ["-p", str(self._folder), "-c", "nginx.conf", "-e", "error.log"]
        self._process = self._host.start(str(_path("nginx")), *words, stderr=subprocess.DEVNULL)
        until = time.monotonic() + READY_S
        while "*:80" not in self._host.run("ss", "-Htnl").replace("0.0.0.0:80", "*:80"):
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self._folder / "error.log").read_text(encoding="utf-8"))
            time.sleep(0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait(timeout=10)

    def response_bytes(self, name: str) -> int:
        """How long the whole response with this file is, head and all."""
        words = ["curl", "-s", "-o", "/dev/null", "-w", "%{size_header} %{size_download}"]
        head, content = self._host.run(*words, f"http://127.0.0.1/{name}").split()
        return int(head) + int(content)

    def requests(self) -> list[list[str]]:
        """What was logged, line by line; whole once it has ended."""
        text = (self._folder / "access.log").read_text(encoding="ascii")
        return [line.split() for line in text.splitlines()]


@contextlib.contextmanager
def openssl_server(host: Host, certificate: Path, key: Path, *options: str) -> Iterator[None]:
    """``openssl s_server`` at port 443 of a host: a page says what it agreed on; one connection at a time."""
    words = ["openssl", "s_server", "-accept", "443", "-www", "-cert", str(certificate), "-key", str(key)]
    process = host.start(*words, *options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + READY_S
        while ":443" not in host.run("ss", "-Htnl"):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"openssl s_server does not listen: {' '.join(words)}")
            time.sleep(0.02)
        yield
    finally:
        process.kill()
        process.wait()


class Wire:
    """What a host's interface sends to our clients from TCP port 80, kept while the ``with`` block lasts."""

    def __init__(self, host: Host, folder: Path, rule: str = "tcp src port 80") -> None:
        self._file = folder / "wire.pcap"
        # A snapshot that is longer than any frame; a buffer for seconds in which nobody reads.
        words = ["-i", host.far, "-w", str(self._file), "-s", "0", "-B", "65536", "-U", "-n", rule]
        self._command = [str(_path("tcpdump")), "-Z", "root", *words]
        self._host = host
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Wire:
        self._process = self._host.start(*self._command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        while "listening on" not in (line := self._process.stderr.readline()):
            if not line:
                raise RuntimeError("tcpdump does not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        # The kernel hands frames over block by block, one that is not full after a second.
        time.sleep(1.3)
        self._process.send_signal(signal.SIGINT)
        _, words = self._process.communicate(timeout=20)
        if error is None and "0 packets dropped by kernel" not in words:
            raise RuntimeError(f"not all was seen: {words}")

    def streams(self) -> list[bytes]:
        """The bytes of each connection, in their order, each once."""
        pieces: dict[bytes, dict[int, bytes]] = defaultdict(dict)
        firsts: dict[bytes, int] = {}
        for frame in _frames(self._file.read_bytes()):
            key, sequence, flags, data = _segment(frame)
            if flags & 2:
                firsts[key] = sequence + 1 & 0xFFFFFFFF
            elif len(data) > len(pieces[key].get(sequence, b"")):
                pieces[key][sequence] = data
        return [_joined(first, pieces[key]) for key, first in firsts.items()]


def _frames(pcap: bytes) -> Iterator[bytes]:
    at = 24
    while at < len(pcap):
        (length,) = struct.unpack_from("<I", pcap, at + 8)
        yield pcap[at + 16 : at + 16 + length]
        at += 16 + length


def _segment(frame: bytes) -> tuple[bytes, int, int, bytes]:
    """Who sent it to whom, its sequence number, flags, and data."""
    if frame[12:14] == b"\x08\x00":
        ends, at = frame[26:34], 14 + 4 * (frame[14] & 0xF)
        # What the kernel leaves to a card to cut may say 0.
        end = 14 + int.from_bytes(frame[16:18], "big") if frame[16:18] != b"\0\0" else len(frame)
    else:
        ends, at = frame[22:54], 54
        end = 54 + int.from_bytes(frame[18:20], "big") if frame[18:20] != b"\0\0" else len(frame)
    data = at + 4 * (frame[at + 12] >> 4)
    sequence = int.from_bytes(frame[at + 4 : at + 8], "big")
    return ends + frame[at : at + 4], sequence, frame[at + 13], frame[data:end]


def _joined(first: int, pieces: dict[int, bytes]) -> bytes:
    stream = bytearray()
    for sequence, data in sorted(pieces.items(), key=lambda piece: piece[0] - first & 0xFFFFFFFF):
        place = sequence - first & 0xFFFFFFFF
        if not data or place + len(data) <= len(stream):
            continue
        assert place <= len(stream), "the capture has a gap"
        assert stream[place:] == data[: len(stream) - place], "other bytes were sent again"
        stream += data[len(stream) - place :]
    return bytes(stream)


def be_neighbors(host: Host, numbers: Iterable[int], ipv6: bool = False) -> None:
    """Tell a host that 10.0.n.number, or those of its prefix, are behind our port: it asks nobody."""
    mac = host.network.mac(None, host.near)
    network = f"{host.prefix}a00:" if ipv6 else f"10.0.{host.number}."
    names = [f"{network}{host.number:x}{number:02x}" if ipv6 else f"{network}{number}" for number in numbers]
    lines = [f"neighbor replace {name} lladdr {mac} dev {host.far}" for name in names]
    host.network.run(host.namespace, "ip", "-batch", "-", typed="\n".join(lines))


class Fetched:
    """A URL that is being fetched on a host."""

    def __init__(self, host: Host, url: str, *options: str) -> None:
        self._words = ["curl", "--silent", "--show-error", "--fail", "--max-time", "60", *options, url]
        self._process = host.start(*self._words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def result(self) -> tuple[str, int]:
        """The SHA-256 of what came, and how many bytes it had. Fails when curl did."""
        got, errors = self._process.communicate()
        assert self._process.returncode == 0, f"{' '.join(self._words)}: {errors.decode()}"
        return hashlib.sha256(got).hexdigest(), len(got)


def curl(host: Host, url: str, *options: str) -> tuple[str, int]:
    """Fetch a URL on a host, and wait for it: as ``Fetched.result``."""
    return Fetched(host, url, "--globoff", *options).result()


def sha256(parts: Sequence[bytes] | bytes) -> str:
    """The hash of bytes, in one piece or in several."""
    whole = parts if isinstance(parts, bytes) else b"".join(parts)
    return hashlib.sha256(whole).hexdigest()
