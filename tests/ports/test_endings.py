"""Each way in which flows end, with ends that are ours or the kernel's: all verdict paths say it.

One run has all of them: each has a template group of its own. So the groups' counts are the table, and the
run's verdict names each.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

HERE = Path(__file__).resolve().parent
PEERS = HERE / "failing_peers.py"
SLOW_US = 300_000.0
#: A group, how it ends at clients, and what else is counted of each of its flows.
ENDINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "right": ("completed", ("http_2xx",)),
    "slow": ("completed", ("http_2xx",)),
    "early": ("closed_early", ("http_2xx",)),
    "empty": ("closed_early", ("unanswered",)),
    "middle": ("reset", ("http_2xx",)),
    "at_once": ("reset", ("unanswered",)),
    "handshake": ("reset", ()),
    "fails": ("completed", ("http_5xx",)),
    "denies": ("completed", ("http_4xx",)),
    "no_http": ("completed", ("http_other",)),
    "nobody": ("refused", ("unanswered",)),
    "no_way": ("timed_out", ("unanswered",)),
    "until_right": ("completed", ("http_2xx",)),
    "until_empty": ("completed", ("unanswered",)),
    "until_middle": ("reset", ("http_2xx",)),
    "until_nginx_503": ("completed", ("http_5xx",)),
    "until_nginx_444": ("completed", ("unanswered",)),
    "udp_right": ("completed", ()),
    "udp_silent": ("timed_out", ("unanswered",)),
}
PORTS = {name: 8001 + number for number, name in enumerate(ENDINGS)}
PORTS |= {f"until_{name}": PORTS[name] for name in ("right", "empty", "middle")}
LISTENING = [name for name in ENDINGS if not name.startswith("until_") and name not in ("nobody", "no_way")]
CLIENTS = """
from allosaur import *

PORTS = {ports!r}


class Endings:
    def get_profile(self, names="", server="10.0.0.2", v6="", **kwargs):
        templates = []
        for number, name in enumerate(names.split("+")):
            is_udp = name.startswith("udp_")
            asks = ASTFProgram(stream=not is_udp)
            nobody = ASTFProgram(stream=not is_udp)
            if is_udp:
                asks.set_keepalive_msg(300)
                asks.send_msg(b"ping")
                asks.recv_msg(1)
                nobody.recv_msg(1)
            else:
                asks.send(b"GET / HTTP/1.1\\r\\nHost: web\\r\\nConnection: close\\r\\n\\r\\n")
                asks.recv_until_close() if name.startswith("until_") else asks.recv(20_000)
                nobody.recv(1)
            clients = ASTFIPGenDist([f"16.0.{{number}}.1", f"16.0.{{number}}.254"])
            ips = ASTFIPGen(dist_client=clients, dist_server=ASTFIPGenDist([server, server]))
            tls = TLS() if name == "handshake" else None
            client = ASTFTCPClientTemplate(
                program=asks, ip_gen=ips, port=PORTS[name], cps=20, limit=4, tls=tls
            )
            rule = ASTFAssociationRule(port=PORTS[name] + 100 * name.startswith("until_"))
            serves = ASTFTCPServerTemplate(program=nobody, assoc=rule)
            templates.append(ASTFTemplate(client_template=client, server_template=serves, tg_name=name))
        info = ASTFGlobalInfo()
        info.tcp.keepinit = 2
        if v6:
            info.ipv6.enable = 1
            info.ipv6.src_msb, info.ipv6.dst_msb = "2001:db8:16::", v6
        return ASTFProfile(default_ip_gen=ips, templates=templates, default_c_glob_info=info)


def register():
    return Endings()
"""


class Runs:
    """The command line before a server of ours."""

    def __init__(self, folder: Path, client: Any) -> None:
        address = client.get_connection_info()
        self._folder = folder
        self._where = ["--server", f"127.0.0.1:{address['sync_port']}"]
        self._where += ["--pub-port", str(address["async_port"])]

    def __call__(self, command: str, *words: str) -> tuple[int, str]:
        """Give the exit code, and what was printed."""
        line = [sys.executable, "-m", "allosaur.cli", command, *words, *self._where]
        path = os.pathsep.join(filter(None, sys.path))
        done = subprocess.run(
            line,
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": path},
            timeout=100,
        )
        assert done.returncode in (0, 1), f"{done.stdout}\n{done.stderr}"
        return done.returncode, done.stdout


@contextlib.contextmanager
def nginx(host: Any, folder: Path) -> Iterator[None]:
    """A web server that answers 503 to all, and on another port closes without an answer."""
    servers = "".join(
        f"server {{ listen {port}; listen [::]:{port}; return {status}; }}\n"
        for status, port in ((503, PORTS["until_nginx_503"]), (444, PORTS["until_nginx_444"]))
    )
    text = f"daemon off; pid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{servers}}}\n"
    (folder / "nginx.conf").write_text(text, encoding="utf-8")
    process = host.start("nginx", "-p", str(folder), "-c", "nginx.conf", "-e", "error.log")
    try:
        until_s = time.monotonic() + 30
        while f":{PORTS['until_nginx_444']} " not in host.run("ss", "-Htnl"):
            assert process.poll() is None and time.monotonic() < until_s, "nginx does not listen"
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def peers(host: Any) -> Iterator[None]:
    """The servers that fail, on a host."""
    words = [sys.executable, str(PEERS), *(f"{name}={PORTS[name]}" for name in LISTENING)]
    # SYNs to this port go nowhere.
    rule = f"tcp dport {PORTS['no_way']} drop"
    drop = f"table inet t {{ chain c {{\n type filter hook input priority 0;\n {rule}\n}}\n}}\n"
    host.network.run(host.namespace, "nft", "-f", "-", typed=drop)
    process = host.start(*words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.terminate()
        process.wait()


def junit_failure(path: Path) -> str:
    failure = ElementTree.parse(path).getroot().find(".//failure")
    return "" if failure is None else failure.attrib["message"]


def assert_group(found: dict[str, Any], name: str) -> None:
    ended, also = ENDINGS[name]
    begun = found["clients"]["begun_flows"]
    counts = found["outcomes"]["clients"]
    wanted = {ended: begun, **dict.fromkeys(also, begun)}
    assert begun == 4, name
    assert {key: count for key, count in counts.items() if count} == wanted, name


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_our_clients_before_servers_that_fail(
    ipv6: bool, network: Any, real: ModuleType, talks: ModuleType, devices: ModuleType, tmp_path: Path
) -> None:
    host = real.Host(network, "web")
    profile = tmp_path / "endings.py"
    profile.write_text(CLIENTS.format(ports=PORTS), encoding="utf-8")
    v6 = ["-t", f"v6={host.prefix}"] if ipv6 else []

    def tunables(names: Sequence[str]) -> list[str]:
        return ["-t", f"names={'+'.join(names)}", *v6]

    with talks.generator([host.near, "dummy"], [host]) as client, peers(host), nginx(host, tmp_path):
        client.release()
        run = Runs(tmp_path, client)
        files = ["--out", "o.json", "--junit", "j.xml", "--report", "r.html"]
        code, out = run("run", str(profile), "-d", "1", *tunables(list(ENDINGS)), *files)
        assert code == 1, out
        document = json.loads((tmp_path / "o.json").read_text(encoding="utf-8"))
        for name in ENDINGS:
            assert_group(document["groups"][name], name)
        told = {ending for ending, _ in ENDINGS.values()} - {"completed"}
        told |= {one for _, also in ENDINGS.values() for one in also if one not in ("http_2xx", "http_other")}
        assert {one["outcome"] for one in document["failures"]} == told
        failed = junit_failure(tmp_path / "j.xml")
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        for reason in document["reasons"]:
            assert reason in failed and reason in out
            assert reason in page or reason[0].upper() + reason[1:] in page, reason
        for said in (
            "were reset by the peer",
            "before their end",
            "timed out",
            "were refused",
            "got no data",
        ):
            assert any(said in reason for reason in document["reasons"]), said

        # Of these, a reset within a handshake has a name of its own.
        code, out = run("run", str(profile), "-d", "1", *tunables(["handshake"]), "--json")
        document = json.loads(out)
        errors = {one["counter"]: one["count"] for one in document["errors"] if one["side"] == "client"}
        assert code == 1 and errors["tls_failures.reset"] == 4, out
        assert any("tls_failures.reset" in reason for reason in document["reasons"]), document["reasons"]

        # What a server takes is a lower bound of what its clients wait.
        slow = ["--fail-if", "first_byte.p50<300ms", "first_byte.min<300ms", "program.min<300ms"]
        code, out = run("run", str(profile), "-d", "1", *tunables(["slow"]), *slow, "--json")
        times = json.loads(out)["times"]
        assert code == 0 and times["first_byte"]["min_us"] >= SLOW_US, out
        assert times["connect"]["count"] == 4

        # Those that are right pass, and say so.
        code, out = run("run", str(profile), "-d", "1", *tunables(["right", "until_right", "udp_right"]))
        assert code == 0, out
        assert "OK: all flows that were offered began and completed, all responses were of class 2xx" in out

        # What a threshold allows passes, and nothing else.
        allowed = ["--fail-if", "reset.flows>4", "unanswered.flows>4"]
        code, out = run("run", str(profile), "-d", "1", *tunables(["at_once"]), *allowed)
        assert code == 0 and "which the thresholds allow" in out, out
        code, out = run("run", str(profile), "-d", "1", *tunables(["at_once"]), "--fail-if", "reset.flows>3")
        assert code == 1 and "reset.flows is 4" in out, out


SERVERS = """
from allosaur import *


class Serves:
    def get_profile(self, **kwargs):
        serves = ASTFProgram()
        serves.recv(1_000)
        serves.send(b"x" * 200_000)
        asks = ASTFProgram()
        asks.send(b"y" * 1_000)
        ips = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.0.1"]),
        )
        templates = [
            ASTFTemplate(
                client_template=ASTFTCPClientTemplate(program=asks, ip_gen=ips, port=port, cps=1),
                server_template=ASTFTCPServerTemplate(
                    program=serves,
                    assoc=ASTFAssociationRule(port=port),
                    tls=TLS() if name == "resets_handshake" else None,
                ),
                tg_name=name,
            )
            for name, port in {ports!r}.items()
        ]
        return ASTFProfile(default_ip_gen=ips, templates=templates)


def register():
    return Serves()
"""
#: How clients of the kernel end, and what our servers count.
CALLS = {
    "whole": "completed",
    "quits": "closed_early",
    "resets": "reset",
    "resets_answer": "reset",
    "resets_handshake": "reset",
}
CALL_PORTS = {name: 8001 + number for number, name in enumerate(CALLS)}
CALLERS = """
import socket, struct, sys, time

address, ports = sys.argv[1], dict(word.split("=") for word in sys.argv[2:])


def gone(name, port):
    with socket.create_connection((address, int(port)), timeout=30) as sock:
        if name == "resets_handshake":
            # The first bytes of a ClientHello.
            sock.sendall(bytes.fromhex("16030100c8010000c403030102030405"))
        else:
            sock.sendall(b"y" * (1_000 if name in ("whole", "resets_answer") else 400))
        if name == "whole":
            while sock.recv(65_536):
                pass
        if name == "resets_answer":
            sock.recv(1_000)
        if name == "quits":
            # It waits for our server's end of the connection, which shows that it took the close.
            sock.shutdown(socket.SHUT_WR)
            sock.recv(1)
        if name.startswith("resets"):
            time.sleep(0.05)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


for _ in range(3):
    for name, port in ports.items():
        gone(name, port)
"""


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_clients_that_fail_before_our_servers(
    ipv6: bool, network: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    host = real.Host(network, "people", number=1)
    profile = tmp_path / "serves.py"
    profile.write_text(SERVERS.replace("{ports!r}", repr(CALL_PORTS)), encoding="utf-8")
    address = "2001:db8:48::3000:1" if ipv6 else "48.0.0.1"

    def call(*names: str) -> None:
        words = [f"{name}={CALL_PORTS[name]}" for name in names]
        host.run(sys.executable, "-c", CALLERS, address, *words)

    with talks.generator(["dummy", host.near], [host]) as client:
        client.release()
        run = Runs(tmp_path, client)
        assert run("start", str(profile), "--servers-only")[0] == 0
        call(*CALLS)

        def groups() -> dict[str, Any]:
            _, out = run("stats", "--pid", "_", "--groups", "--json")
            return dict(json.loads(out)["groups"])

        def are_counted() -> bool:
            ended = (one["outcomes"]["servers"][CALLS[name]] for name, one in groups().items())
            return all(count == 3 for count in ended)

        talks.wait_until(are_counted)
        for name, one in groups().items():
            counts = {key: count for key, count in one["outcomes"]["servers"].items() if count}
            assert counts == {CALLS[name]: 3}, name
        _, out = run("stop", "--json")
        verdict = json.loads(out)["verdicts"]["_"]
        assert verdict["reasons"][0] == "9 flows were reset by the peer (60 %)"
        assert verdict["reasons"][1] == "3 flows were closed by the peer before their end (20 %)"
        assert any("tls_failures.reset" in reason for reason in verdict["reasons"]), verdict["reasons"]

        assert run("start", str(profile), "--servers-only")[0] == 0
        call("whole")
        _, out = run("stop")
        assert "OK: all flows that came completed, and no errors were counted." in out


def test_flows_that_a_router_resets_or_loses(
    network: Any, talks: ModuleType, devices: ModuleType, tmp_path: Path
) -> None:
    router = devices.Router(network)
    router.introduce(0, range(3, 31))
    rules = "table inet t { chain c { type filter hook forward priority 0;\n"
    rules += "".join(f" tcp {way} 80 ct packets > 9 reject with tcp reset\n" for way in ("dport", "sport"))
    rules += " udp dport 53 numgen inc mod 2 == 0 drop\n}\n}\n"
    router.rules(rules)
    profile = tmp_path / "both.py"
    profile.write_text(BOTH, encoding="utf-8")
    with talks.generator(router.ports) as client:
        talks.send_to(client, router)
        client.release()
        run = Runs(tmp_path, client)
        code, out = run("run", str(profile), "-d", "1", "-t", "port=81", "--json")
        document = json.loads(out)
        assert code == 0 and document["lost_bytes"] == 0, document["reasons"]
        assert "all that was sent was received" in document["verdict"]

        code, out = run("run", str(profile), "-d", "1", "--json", "--junit", "j.xml")
        document = json.loads(out)
        ends = document["outcomes"]
        assert code == 1
        assert ends["clients"]["completed"] == ends["servers"]["completed"] == 0
        assert ends["clients"]["reset"] + ends["servers"]["reset"] >= 4, ends
        assert any("reset by the peer" in reason for reason in document["reasons"])
        assert "reset by the peer" in junit_failure(tmp_path / "j.xml")

        code, out = run("run", str(profile), "-d", "1", "-t", "udp=1", "--json")
        document = json.loads(out)
        assert code == 1 and document["outcomes"]["clients"]["timed_out"] == 2, document["outcomes"]
        assert document["outcomes"]["clients"]["completed"] == 2
        assert document["lost_messages"] == 0 or document["outcomes"]["clients"]["unanswered"] == 2


BOTH = """
from allosaur import *


class Both:
    def get_profile(self, port=80, udp=0, **kwargs):
        asks, answers = ASTFProgram(stream=not udp), ASTFProgram(stream=not udp)
        if udp:
            port = 53
            asks.set_keepalive_msg(500)
            asks.send_msg(b"ping")
            asks.recv_msg(1)
            answers.recv_msg(1)
            answers.send_msg(b"pong")
        else:
            asks.send(b"y" * 100)
            asks.recv(30_000)
            answers.recv(100)
            answers.send(b"x" * 30_000)
        ips = ASTFIPGen(
            dist_client=ASTFIPGenDist(["10.0.0.2", "10.0.0.30"]),
            dist_server=ASTFIPGenDist(["10.0.1.2", "10.0.1.2"]),
        )
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=asks, ip_gen=ips, port=int(port), cps=20, limit=4),
            server_template=ASTFTCPServerTemplate(program=answers, assoc=ASTFAssociationRule(port=int(port))),
        )
        return ASTFProfile(default_ip_gen=ips, templates=template)


def register():
    return Both()
"""
