"""Clients and servers of the web, ours and others, over a pair of veth in namespaces of their own.

All are counted in the same way: connections by the kernel that has the one end, processor time by what
the kernel says that threads ran. The one who asks has a CPU of its own and the one who answers another,
where there are two.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import loads
from allosaur import ASTFClient
from allosaur.cli.flows._measured import Generator, processes_ran_s
from common import Result

# The tests' own networks, hosts and profiles.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "ports"))
import network
import real
import talks

BODY_BYTES = 1024
#: Connections at a time, of each client.
AT_ONCE = 64
#: What the head of any request has at least.
REQUEST_BYTES_MIN = 40
#: A response ends when the server closes, long before so many bytes.
UNTIL_CLOSED = 1_000_000
SERVER = "48.0.0.1"
CLOSE = "Connection: close"
WARM_S = 0.5
#: Of the one who asks and the one who answers, by name: the CPU, and the processes.
Who = Mapping[str, tuple[int, Sequence[int]]]
PACKAGES = {"nginx": "nginx-light", "wrk": "wrk", "ab": "apache2-utils", "taskset": "util-linux"}


def why_not(*tools: str) -> str | None:
    """What is missing on this machine, or None."""
    for tool in ("taskset", *tools):
        if shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            return f"there is no `{tool}`: install {PACKAGES[tool]}"
    if problem := network.why_not():
        return str(problem)
    # Hosts are set up by more than these.
    return next((f"there is no `{tool}`: install iproute2" for tool in ("ss", "nstat") if _lacks(tool)), None)


def _lacks(tool: str) -> bool:
    return shutil.which(tool) is None


def cpus() -> tuple[int, int]:
    """Give the CPU of whoever asks, and that of whoever answers."""
    own = sorted(os.sched_getaffinity(0))
    return own[-1], own[0]


def client_against_nginx(kind: str, seconds: float, binary: Path) -> Result:
    """Let our clients ask nginx, over a port of this kind."""
    asking, answering = cpus()
    with (
        _nginx_host() as (host, pids),
        Generator([_port(kind, host.near), "dummy"], cpus=[asking], binary=binary) as generator,
    ):
        _join(generator.client, 0, host)
        asks = talks.asks(talks.get("file", f"{CLOSE}\r\n"), UNTIL_CLOSED)
        profile = loads.always(asks, talks.answers(1, b"-"), AT_ONCE, (host.address, host.address))
        generator.start(profile)
        who = {"own": (asking, [generator.pid]), "nginx": (answering, pids)}
        return _counted(host, "TcpPassiveOpens", seconds, who)


def tool_against_nginx(tool: str, seconds: float) -> Result:
    """Let wrk or ab ask nginx, each time on a new connection."""
    with _nginx_host() as (host, pids):
        asking, answering = cpus()
        people = _people(host)
        command = _command(tool, f"http://{host.address}/file", seconds)
        with _asking(people, command) as pid:
            who = {"own": (asking, [pid]), "nginx": (answering, pids)}
            return _counted(host, "TcpPassiveOpens", seconds, who)


def server_against_wrk(kind: str, seconds: float, binary: Path) -> Result:
    """Let wrk ask our servers, over a port of this kind."""
    asking, answering = cpus()
    with network.Network() as space:
        host = real.Host(space, "people", number=1)
        _widen(space, host.namespace)
        with Generator(["dummy", _port(kind, host.near)], cpus=[answering], binary=binary) as generator:
            _join(generator.client, 1, host)
            answer = talks.answer(real.body(BODY_BYTES))
            profile = talks.profile(talks.asks(b"-", 1), talks.answers(REQUEST_BYTES_MIN, answer))
            generator.start(profile, servers_only=True)
            command = _command("wrk", f"http://{SERVER}/file", seconds)
            with _asking(host.namespace, command) as pid:
                who = {"own": (answering, [generator.pid]), "wrk": (asking, [pid])}
                return _counted(host, "TcpActiveOpens", seconds, who)


def nginx_against_wrk(seconds: float) -> Result:
    """Let wrk ask nginx, for what stands beside our servers."""
    asking, answering = cpus()
    with _nginx_host() as (host, pids):
        command = _command("wrk", f"http://{host.address}/file", seconds)
        with _asking(_people(host), command) as pid:
            who = {"own": (answering, pids), "wrk": (asking, [pid])}
            return _counted(host, "TcpPassiveOpens", seconds, who)


def _port(kind: str, link: str) -> str:
    return f"{kind}:{link}"


@contextmanager
def _nginx_host() -> Iterator[tuple[Any, list[int]]]:
    """Give a host with nginx of one worker, and the processes of nginx."""
    _, answering = cpus()
    with network.Network() as space, tempfile.TemporaryDirectory() as folder:
        host = real.Host(space, "web")
        with real.Nginx(host, Path(folder), {"file": real.body(BODY_BYTES)}) as nginx:
            assert nginx._process is not None
            pids = _with_children(nginx._process.pid)
            for pid in pids:
                os.sched_setaffinity(pid, {answering})
            yield host, pids


def _with_children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    until_s = time.monotonic() + 5
    while not (found := children.read_text(encoding="ascii").split()) and time.monotonic() < until_s:
        time.sleep(0.01)
    return [pid, *map(int, found)]


def _join(client: ASTFClient, port: int, host: Any) -> None:
    """Give a port of ours its address, and the host as its gateway."""
    client.set_service_mode(enabled=True)
    client.set_l3_mode(port=port, src_ipv4=host.port_address, dst_ipv4=host.address)
    client.set_service_mode(enabled=False)


def _people(host: Any) -> str:
    """Put our end of a host's veth into a namespace where others ask from. Gives its name."""
    space = host.network
    people = str(space.namespace("people"))
    space.run(None, "ip", "link", "set", host.near, "netns", people)
    space.run(people, "ip", "address", "add", f"{host.port_address}/24", "dev", host.near)
    space.run(people, "ip", "link", "set", host.near, "up")
    _widen(space, people)
    return people


def _widen(space: Any, namespace: str) -> None:
    """Let a kernel's clients have all ports, and take those again that wait for a late segment."""
    ipv4 = "/proc/sys/net/ipv4"
    space.write(namespace, f"{ipv4}/ip_local_port_range", "'1024 65535'")
    space.write(namespace, f"{ipv4}/tcp_tw_reuse", "1")


def _command(tool: str, url: str, seconds: float) -> list[str]:
    # It asks longer than is measured, and is ended then.
    duration = str(int(seconds + 4 * WARM_S + 10))
    if tool == "wrk":
        return ["wrk", "-t1", f"-c{AT_ONCE}", f"-d{duration}s", "-H", CLOSE, url]
    return ["ab", "-q", "-t", duration, "-n", "100000000", "-c", str(AT_ONCE), url]


@contextmanager
def _asking(namespace: str, command: Sequence[str]) -> Iterator[int]:
    """Run who asks on a CPU of its own. Gives its process."""
    asking, _ = cpus()
    quiet = subprocess.DEVNULL
    words = ["ip", "netns", "exec", namespace, "taskset", "-c", str(asking), *command]
    process = subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield process.pid
        if process.poll() is not None:
            raise RuntimeError(f"{' '.join(command)} ended before its time, with {process.returncode}")
    finally:
        process.terminate()
        process.wait()


def _counted(host: Any, counter: str, seconds: float, who: Who) -> Result:
    """Count connections of the host's kernel for a while, and what each of some processes ran meanwhile."""
    time.sleep(WARM_S)
    first = _moment(host.counted, counter, who)
    time.sleep(seconds)
    return per_connection(first, _moment(host.counted, counter, who))


def _moment(counted: Callable[[], Mapping[str, int]], counter: str, who: Who) -> Result:
    ran = {name: processes_ran_s(pids) for name, (_, pids) in who.items()}
    softirq = {name: softirq_s(cpu) for name, (cpu, _) in who.items()}
    return {"at_s": time.monotonic(), "connections": counted()[counter], "ran": ran, "softirq": softirq}


def softirq_s(cpu: int, stat: Path = Path("/proc/stat")) -> float:
    """Give the seconds that a CPU has been in soft interrupts, as the kernel samples it (proc(5))."""
    lines = stat.read_text(encoding="ascii").splitlines()
    (fields,) = (words for line in lines if (words := line.split())[:1] == [f"cpu{cpu}"])
    return int(fields[7]) / os.sysconf("SC_CLK_TCK")


def per_connection(first: Result, last: Result) -> Result:
    """Give connections a second, and of each process its share of a core and its time a connection.

    A moment has what each ran (``ran``), and its CPU's time in soft interrupts (``softirq``), in seconds.
    """
    seconds, connections = last["at_s"] - first["at_s"], last["connections"] - first["connections"]
    row: Result = {"seconds": seconds, "connections": connections, "cps": connections / seconds}
    softirq = {name: last["softirq"][name] - first["softirq"][name] for name in first["softirq"]}
    for name in first["ran"]:
        ran_s = last["ran"][name] - first["ran"][name]
        (of_other,) = (time_s for other, time_s in softirq.items() if other != name)
        apart_s = ran_s - softirq[name] + of_other
        row[name] = ran_s / seconds
        row[f"{name}_us"] = ran_s / connections * 1e6 if connections else None
        row[f"{name}_apart_us"] = apart_s / connections * 1e6 if connections else None
    return row
