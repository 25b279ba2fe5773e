"""Announces a million routes to FRR's bgpd: `sudo .venv/bin/python bench/bgp.py`.

In a network namespace of its own, bgpd connects to our speaker (`crates/bgp/examples/bgp_announce.rs`) and
gets a million routes of IPv4, of IPv6, and a thousand on each of a thousand sessions. Beside it, in turns,
the yardstick: the same messages, read from a file and sent over a plain socket. Where sending takes as long
as bgpd does, within 10 %, the line says "injection-bound": it may be the sender that is measured. Memory of
both is told. Numbers are medians.

It needs root and FRR (Debian and Ubuntu: frr).
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BGPD = Path("/usr/lib/frr/bgpd")
PORT = 17900
#: Ends what is broken.
DEADLINE_S = 600.0
#: AS 65001 with 127.0.0.1 as its identifier, routes of both families and AS numbers of four octets, no hold
#: time; and KEEPALIVE.
OPEN = bytes.fromhex("04fde900007f000001140212010400010001010400020001") + bytes.fromhex("41040000fde9")
GREETING = (
    b"\xff" * 16 + (19 + len(OPEN)).to_bytes(2, "big") + b"\1" + OPEN + b"\xff" * 16 + bytes.fromhex("001304")
)
Timed = dict[str, float]


def main() -> int:
    """Measure each case, ours and the yardstick in turns."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--routes", type=int, default=1_000_000, help="how many routes in all (default: %(default)s)"
    )
    parser.add_argument("--sessions", type=int, default=1000, help="of the last case (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="of each case (default: %(default)s)")
    options = parser.parse_args()
    if os.geteuid() != 0 or not BGPD.exists():
        print(f"error: this needs root, and {BGPD} (Debian and Ubuntu: apt-get install frr)", file=sys.stderr)
        return 2
    build = ["cargo", "build", "--release", "-q", "-p", "allosaur-bgp", "--example", "bgp_announce"]
    subprocess.run(build, cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory(prefix="allosaur-bgp-") as scratch, namespace() as name:
        Path(scratch).chmod(0o755)
        for family in ("ipv4", "ipv6"):
            messages = Path(scratch) / family
            ours, plain = [], []
            for _ in range(options.rounds):
                ours.append(announce(name, Path(scratch), options.routes, family, 1, messages))
                plain.append(send_file(name, Path(scratch), options.routes, family, messages))
            timed, yardstick = medians(ours), medians(plain)["bgpd has all s"]
            show(f"{options.routes:,} {family} routes", timed)
            bound = ", injection-bound" if timed["sent s"] >= 0.9 * timed["bgpd has all s"] else ""
            ratio = timed["bgpd has all s"] / yardstick
            print(
                f"  the same from a file: {yardstick:.2f} s; ours took {ratio:.2f} of it{bound}", flush=True
            )
        each = options.routes // options.sessions
        many = announce(name, Path(scratch), each, "ipv4", options.sessions, None)
        show(f"{each:,} ipv4 routes on each of {options.sessions:,} sessions", many)
    return 0


def medians(rounds: list[Timed]) -> Timed:
    """Give the median of each value."""
    return {name: statistics.median(timed[name] for timed in rounds) for name in rounds[0]}


def show(what: str, timed: Timed) -> None:
    """Print what was measured, a line."""
    print(f"{what}: " + ", ".join(f"{name} {value:,.2f}" for name, value in timed.items()), flush=True)


@contextmanager
def namespace() -> Iterator[str]:
    """Give a network namespace with a loopback interface."""
    name = f"bgp-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)


@contextmanager
def bgpd(name: str, scratch: Path, sessions: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start bgpd with so many neighbors at 127.0.0.0 + n, to which it connects."""
    lines = ["router bgp 64999", " bgp router-id 192.0.2.254", " no bgp ebgp-requires-policy"]
    addresses = [f"127.0.{n >> 8}.{n & 255}" for n in range(1, sessions + 1)]
    for number, address in enumerate(addresses, 65001):
        lines += [
            f" neighbor {address} {words}"
            for words in (
                f"remote-as {number}",
                f"port {PORT}",
                "timers connect 1",
                "ebgp-multihop 2",
                "disable-connected-check",
            )
        ]
    lines += [" address-family ipv6 unicast", *(f"  neighbor {address} activate" for address in addresses)]
    config = scratch / "bgpd.conf"
    config.write_text("\n".join(lines) + "\n exit-address-family\n", encoding="utf-8")
    files = [
        "-f",
        str(config),
        "-i",
        str(scratch / "pid"),
        "--vty_socket",
        str(scratch),
        "-z",
        str(scratch / "z"),
    ]
    command = ["ip", "netns", "exec", name, str(BGPD), "-n", "-Z", "-S", "-p", "0", "-P", "0", *files]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_all(scratch: Path, family: str, routes: int) -> float:
    """Wait until bgpd has so many routes of all neighbors, and give the time of day then."""
    question = ["vtysh", "--vty_socket", str(scratch), "-c", f"show bgp {family} unicast summary json"]
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        answer = subprocess.run(question, capture_output=True, check=False, text=True).stdout
        peers = json.loads(answer or "{}").get("peers", {}).values()
        if sum(peer.get("pfxRcd", 0) for peer in peers) >= routes:
            return time.monotonic()
        time.sleep(0.1)
    raise TimeoutError(f"bgpd has not all of {routes} routes after {DEADLINE_S:g} s")


def peak_mb(process: subprocess.Popen[bytes]) -> float:
    """Give the most memory that a process had."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def announce(
    name: str, scratch: Path, routes: int, family: str, sessions: int, messages: Path | None
) -> Timed:
    """Let our speaker announce, and give seconds from the request on and megabytes."""
    program = ROOT / "target/release/examples/bgp_announce"
    command = ["ip", "netns", "exec", name, str(program), str(PORT), str(routes), family, str(sessions)]
    command += [str(messages)] if messages else []
    timed: Timed = {}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as speaker:
        assert speaker.stdout and speaker.stdin
        speaker.stdout.readline()
        with bgpd(name, scratch, sessions) as router:
            for line in speaker.stdout:
                what, _, rest = line.decode().partition(" ")
                if what.strip() == "announcing":
                    began = time.monotonic()
                elif what == "memory":
                    timed["shared MB"] = int(rest.split()[1]) / 2**20
                    break
                else:
                    timed[f"{what} s"] = float(rest)
            timed["bgpd has all s"] = wait_for_all(scratch, family, routes * sessions) - began
            timed |= {"our MB": peak_mb(speaker), "bgpd's MB": peak_mb(router)}
        speaker.stdin.close()
        speaker.kill()
    return timed


def send_file(name: str, scratch: Path, routes: int, family: str, messages: Path) -> Timed:
    """Send a file over a plain socket, and give seconds from its first octet on."""
    octets = messages.read_bytes()
    with inside(name), socket.create_server(("127.0.0.1", PORT)) as listener, bgpd(name, scratch, 1):
        peer, _ = listener.accept()
        with peer:
            peer.sendall(GREETING)
            greeted = b""
            # Its OPEN and its KEEPALIVE.
            while not greeted.endswith(GREETING[-19:]):
                greeted += peer.recv(4096)
            threading.Thread(target=_discard, args=(peer,), daemon=True).start()
            began = time.monotonic()
            peer.sendall(octets)
            return {"bgpd has all s": wait_for_all(scratch, family, routes) - began}


def _discard(peer: socket.socket) -> None:
    try:
        while peer.recv(1 << 16):
            pass
    except OSError:
        return


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Let sockets that this thread makes be of a namespace."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    other = os.open(f"/run/netns/{name}", os.O_RDONLY)
    setns(other)
    try:
        yield
    finally:
        setns(own)
        os.close(own)
        os.close(other)


def setns(file: int) -> None:
    """Go into the network namespace of a file; Python has that from 3.12 on."""
    import ctypes

    if ctypes.CDLL(None, use_errno=True).setns(file, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "the namespace cannot be entered")


if __name__ == "__main__":
    sys.exit(main())
