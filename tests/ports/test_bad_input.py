"""Ports that cannot be used are refused before any traffic: what is wrong with which, and what to do."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLError, STLPktBuilder, STLStream, STLTXSingleBurst
from allosaur.server import LocalServer, find_binary
from scapy.all import IP, UDP, Dot1Q, Ether

PATIENCE_S = 20
CAP_NET_RAW = 13
PR_CAPBSET_DROP = 24
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
NOBODY = 65534

Serve = Callable[..., "subprocess.Popen[str]"]


def command(*words: str) -> list[str]:
    return [str(find_binary()), *words]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(
        ports: str, namespace: str | None = None, prepare: Callable[[], None] | None = None
    ) -> subprocess.Popen[str]:
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        words = command("serve", "--ports", ports, "--rpc-port", "0", "--pub-port", "0")
        started.append(
            subprocess.Popen(
                [*inside, *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=prepare,
            )
        )
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ready(server: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """Wait until a server can be reached."""
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line.startswith("ready "):
        _, words = server.communicate(timeout=PATIENCE_S)
        pytest.fail(f"the server does not start: {words}")
    return server


def ended(server: subprocess.Popen[str]) -> str:
    """End a server. Gives its log."""
    server.terminate()
    _, log = server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 0, log
    return log


def refused(server: subprocess.Popen[str], *words: str, code: int = 2) -> None:
    """Check that a server ended with `code`, never was ready, and said these words in one line.

    Code 2 is wrong input, 3 a set-up that does not work.
    """
    out, err = server.communicate(timeout=PATIENCE_S)
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert server.returncode == code, err
    assert out == "", out
    assert len(errors) == 1, err
    for word in words:
        assert word in errors[0], f"{word!r} is not in {errors[0]!r}"


def test_an_interface_that_is_not_there(network: Any, serve: Serve) -> None:
    near, _ = network.veth()
    wrong = near[:-1] + "x"
    refused(serve(wrong), f"'{wrong}'", "no such interface", f"did you mean {near}?", "allosaur ports")
    refused(serve(f"memory,{wrong}"), f"'{wrong}'")


def test_an_interface_that_is_down(network: Any, serve: Serve) -> None:
    near, _ = network.veth()
    network.run(None, "ip", "link", "set", near, "down")
    refused(serve(near), f"'{near}'", "is down", f"ip link set {near} up", code=3)


def test_an_interface_that_carries_no_ethernet(network: Any, serve: Serve) -> None:
    inside = network.namespace("tunnel")
    made = subprocess.run(
        ["ip", "netns", "exec", inside, "ip", "tuntap", "add", "tun7", "mode", "tun"],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"this machine makes no tun interfaces: {made.stderr.strip()}")
    network.run(inside, "ip", "link", "set", "tun7", "up")
    refused(serve("tun7", inside), "'tun7'", "Ethernet")


def test_a_stream_that_is_longer_than_the_mtu(network: Any) -> None:
    near, far = network.veth(mtu=1300)
    plain = Ether() / IP() / UDP() / bytes(1400 - 42)
    tagged = Ether() / Dot1Q(vlan=1) / IP() / UDP() / bytes(1400 - 46)
    with LocalServer(ports=[near]) as server, server.client() as client:
        for packet, mtu, longest in [(plain, 1386, 1314), (tagged, 1382, 1318)]:
            client.reset()
            builder = STLPktBuilder(pkt=packet)
            streams = [STLStream(packet=builder, mode=STLTXSingleBurst(total_pkts=1))]
            ids = client.add_streams(streams, ports=[0])
            with pytest.raises(STLError) as caught:
                client.start(ports=[0])
            words = str(caught.value)
            number = ids[0] if isinstance(ids, list) else ids
            for word in [
                f"stream {number}",
                "1400 bytes",
                f"interface {near}",
                "MTU of 1300",
                f"at most {longest}",
                f"ip link set dev {near} mtu {mtu}",
            ]:
                assert word in words, f"{word!r} is not in {words!r}"
        assert client.get_stats()[0]["opackets"] == 0
    # The remedy is one, where the other end takes as much.
    for end in (near, far):
        network.run(None, "ip", "link", "set", "dev", end, "mtu", "1386")
    with LocalServer(ports=[near]) as server, server.client() as client:
        client.reset()
        client.add_streams(
            STLStream(packet=STLPktBuilder(pkt=plain), mode=STLTXSingleBurst(total_pkts=1)), ports=[0]
        )
        client.start(ports=[0])
        client.wait_on_traffic(ports=[0])
        assert client.get_stats()[0]["opackets"] == 1


def test_an_interface_that_another_server_has(network: Any, serve: Serve) -> None:
    near, other = network.veth()
    first = ready(serve(near))
    refused(serve(near), f"'{near}'", f"process {first.pid}", f"kill {first.pid}", code=3)
    refused(serve(f"{other},{near}"), f"'{near}'", f"process {first.pid}", code=3)
    # Another interface is free, also one that a refused server had opened already.
    second = ready(serve(other))
    listed = json.loads(subprocess.check_output(command("ports", "--json"), text=True))
    devices = {device["interface"]: device for device in listed["devices"]}
    for name, pid in [(near, first.pid), (other, second.pid)]:
        assert any("Allosaur" in user for user in devices[name]["used_by"]), devices[name]
        assert f"allosaur-server ({pid})" in devices[name]["programs"], devices[name]
        assert devices[name]["ports"][0]["ready"] is False
    # It is free again however the server ends.
    first.kill()
    first.wait()
    third = ready(serve(near))
    ended(third)
    ended(second)
    ended(ready(serve(f"{near},{other}")))


def test_a_claim_holds_for_all_kinds_of_ports(network: Any, serve: Serve) -> None:
    near, _ = network.veth()
    first = ready(serve(near))
    refused(serve(f"af_xdp:{near}"), f"'{near}'", f"process {first.pid}", code=3)
    ended(first)


def test_a_port_that_takes_all_that_arrives_spares_the_session(
    network: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = network.namespace("session")
    _, far = network.veth(inside)
    network.run(inside, "ip", "address", "add", "10.7.7.7/24", "dev", far)
    monkeypatch.setenv("SSH_CONNECTION", "10.7.7.9 50000 10.7.7.7 22")
    refused(serve(f"memory,af_xdp:{far}", inside), f"'{far}'", "your own session", "another interface")
    assert "xdp" not in network.facts(inside, far)
    log = ended(ready(serve(far, inside)))
    assert "your own session" in log


def test_names_of_other_namespaces_do_not_matter(network: Any, serve: Serve) -> None:
    spaces = [network.namespace("one"), network.namespace("two")]
    for space in spaces:
        network.run(space, "ip", "link", "add", "same0", "type", "veth", "peer", "name", "same1")
        for link in ("same0", "same1"):
            network.run(space, "ip", "link", "set", link, "up")
    servers = [ready(serve("same0", space)) for space in spaces]
    refused(serve("same0", spaces[1]), "'same0'", "another Allosaur server", code=3)
    for server in servers:
        ended(server)


def test_two_ports_on_one_interface(network: Any, serve: Serve) -> None:
    near, _ = network.veth()
    server = serve(f"{near},memory,af_packet:{near}")
    _, words = server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 2
    assert "ports 0 and 2 are the same" in words, words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ports: memory\n", ":1:8: ports: is a single value: write a list"),
        ("cores: many\n", ":1:8: cores: "),
        ("ports: [memory, memory]\nports_per_core: 3\n", ":2:17: ports_per_core: is not known"),
        ("ports:\n  - port: memory\n    vlan: 0\n", ":3:11: ports[0].vlan: "),
        ("ports: [dummy\n", ":2:1: "),
    ],
)
def test_a_configuration_that_is_wrong_names_line_and_key(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(text, encoding="utf-8")
    started = subprocess.run(
        command("serve", "--config", str(path)),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (started.returncode, started.stdout) == (2, "")
    assert started.stderr.startswith(f"error: {path}{words}"), started.stderr


@pytest.fixture(scope="module")
def dpdk() -> None:
    """Skip where the server was built without DPDK."""
    listed = json.loads(subprocess.check_output(command("ports", "--json"), text=True))
    if not listed["dpdk"]["built"]:
        pytest.skip("the server was built without DPDK: install libdpdk-dev and run `make install`")


def test_a_pci_device_that_is_not_there(dpdk: None, serve: Serve) -> None:
    refused(serve("pci:0000:ff:1f.7"), "pci:0000:ff:1f.7", "no such PCI device", "allosaur ports")


def test_a_pci_device_of_the_kernel_s(dpdk: None, serve: Serve) -> None:
    listed = json.loads(subprocess.check_output(command("ports", "--json"), text=True))
    shared = ("mlx4_core", "mlx5_core", "mana")
    kernels = [
        device
        for device in listed["devices"]
        if device["pci"] and device["interface"] and device["driver"] not in shared
    ]
    if not kernels:
        pytest.skip("this machine has no network card on the PCI bus that the kernel drives")
    address, interface = kernels[0]["pci"], kernels[0]["interface"]
    driver = (Path("/sys/bus/pci/devices") / address / "driver").resolve().name
    before = Path(f"/sys/class/net/{interface}/flags").read_text(encoding="ascii")
    refused(
        serve(f"pci:{address}"),
        f"pci:{address}",
        f"driver {driver}",
        f"interface {interface}",
        f"allosaur ports prepare {address}",
    )
    assert Path(f"/sys/class/net/{interface}/flags").read_text(encoding="ascii") == before


def test_a_device_that_is_no_network_card(dpdk: None, serve: Serve) -> None:
    for device in sorted(Path("/sys/bus/pci/devices").glob("*")):
        if not (device / "class").read_text(encoding="ascii").startswith("0x02"):
            refused(serve(f"pci:{device.name}"), device.name, "no network card", "allosaur ports")
            return
    pytest.skip("this machine has no other PCI device")


def drop_all_but(capability: int | None) -> None:
    """Let what is started next be no more than this, whoever starts it."""
    libc = ctypes.CDLL(None, use_errno=True)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text(encoding="ascii"))
    for number in range(last + 1):
        if number != capability:
            libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)


def as_nobody(capability: int | None = None, bound: int | None = None) -> Callable[[], None]:
    """An ordinary user, with one capability or none. A program may bring along ``bound``."""

    def become() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        drop_all_but(capability if bound is None else bound)
        if capability is not None:
            libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        if capability is not None:
            # Version 3 of the kernel's structure: effective, permitted, inheritable, twice 32 bits.
            header = (ctypes.c_uint32 * 2)(0x20080522, 0)
            bit = 1 << capability
            libc.capset(header, (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0))
            libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0)

    return become


@pytest.fixture
def open_binary(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The server where everybody may start it."""
    reachable = Path(f"/tmp/allosaur-server-{os.getpid()}")
    reachable.write_bytes(find_binary().read_bytes())
    reachable.chmod(0o755)
    monkeypatch.setenv("ALLOSAUR_SERVER", str(reachable))
    yield
    reachable.unlink()


def test_an_ordinary_user_needs_one_capability(network: Any, serve: Serve, open_binary: None) -> None:
    near, _ = network.veth()
    refused(serve(near, prepare=as_nobody()), f"'{near}'", "CAP_NET_RAW", "setcap cap_net_raw+ep", code=3)
    server = ready(serve(near, prepare=as_nobody(CAP_NET_RAW)))
    status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert facts["Uid"].split() == [str(NOBODY)] * 4
    assert int(facts["CapEff"], 16) == 1 << CAP_NET_RAW
    log = ended(server)
    assert "ERROR" not in log


def test_the_capability_may_come_with_the_program(network: Any, serve: Serve, open_binary: None) -> None:
    near, _ = network.veth()
    given = subprocess.run(
        ["setcap", "cap_net_raw+ep", str(find_binary())], capture_output=True, text=True, check=False
    )
    if given.returncode != 0:
        pytest.skip(f"this file system keeps no capabilities: {given.stderr.strip()}")
    server = ready(serve(near, prepare=as_nobody(bound=CAP_NET_RAW)))
    ended(server)


def test_an_ordinary_user_may_look_at_the_machine(network: Any, open_binary: None) -> None:
    near, _ = network.veth()
    words = command("ports", "--json")
    listed = subprocess.run(words, capture_output=True, text=True, preexec_fn=as_nobody(), check=True)
    names = [device["interface"] for device in json.loads(listed.stdout)["devices"]]
    assert near in names


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        ([], []),
        ([["ip", "address", "add", "10.9.8.7/24", "dev", "{}"]], ["10.9.8.7/24", "ip address flush dev {}"]),
        (
            [
                ["ip", "address", "add", "10.9.8.7/24", "dev", "{}"],
                ["ip", "route", "add", "default", "via", "10.9.8.1"],
            ],
            ["default route", "Use another interface"],
        ),
        (
            [
                ["ip", "link", "add", "bridge7", "type", "bridge"],
                ["ip", "link", "set", "{}", "master", "bridge7"],
            ],
            ["part of bridge7", "ip link set {} nomaster"],
        ),
    ],
)
def test_who_else_is_on_an_interface_is_a_warning(
    network: Any, serve: Serve, commands: list[list[str]], words: list[str]
) -> None:
    inside = network.namespace("used")
    _, far = network.veth(inside)
    for words_of_command in commands:
        network.run(inside, *[word.format(far) for word in words_of_command])
    log = ended(ready(serve(far, inside)))
    warnings = [line for line in log.splitlines() if "WARN" in line]
    assert len(warnings) == (1 if words else 0), log
    for word in words:
        assert word.format(far) in warnings[0], warnings


def test_what_prepare_prints_does_what_it_says(network: Any, serve: Serve) -> None:
    """The commands for an interface, run as they are, free it and bring it back."""
    inside = network.namespace("prepared")
    _, far = network.veth(inside)
    network.run(inside, "ip", "address", "add", "10.9.8.7/24", "dev", far)
    network.run(inside, "ip", "link", "add", "bridge7", "type", "bridge")
    network.run(inside, "ip", "link", "set", far, "master", "bridge7")
    printed = network.run(inside, *command("ports", "prepare", far))
    use = f"allosaur server --ports {far}"
    assert use in printed
    before, after = printed.split(use)
    # The binary of these tests is nobody's to change.
    network.run(inside, "sh", "-ec", before.replace("setcap", "true"))
    assert "10.9.8.7" not in network.run(inside, "ip", "address", "show", "dev", far)
    log = ended(ready(serve(far, inside)))
    assert "WARN" not in log
    network.run(inside, "sh", "-ec", after)
    facts = network.facts(inside, far)
    assert facts["master"] == "bridge7"
    assert "10.9.8.7/24" in network.run(inside, "ip", "address", "show", "dev", far)


def test_prepare_spares_the_session_and_the_default_route(network: Any) -> None:
    inside = network.namespace("spared")
    _, far = network.veth(inside)
    network.run(inside, "ip", "link", "add", "bridge7", "type", "bridge")
    network.run(inside, "ip", "link", "set", far, "master", "bridge7")
    network.run(inside, "ip", "link", "set", "bridge7", "up")
    network.run(inside, "ip", "address", "add", "10.7.7.7/24", "dev", "bridge7")
    network.run(inside, "ip", "route", "add", "default", "via", "10.7.7.1")

    def prepare(name: str, *words: str, **environment: str) -> tuple[int, str]:
        run = ["ip", "netns", "exec", inside, *command("ports", "prepare", name, *words)]
        done = subprocess.run(
            run, capture_output=True, text=True, env={**os.environ, **environment}, check=False
        )
        assert (done.returncode == 0) == (done.stderr == ""), done.stderr
        return done.returncode, done.stdout or done.stderr

    code, words = prepare(far)
    assert (code, "--anyway" in words) == (2, True), words
    assert prepare(far, "--anyway")[0] == 0
    # By the address that the user came to, and by the way back to the user, also below a bridge.
    for session in ("10.7.7.9 50000 10.7.7.7 22", "10.7.7.9 50000 192.0.2.1 22"):
        for name in (far, "bridge7"):
            code, words = prepare(name, "--anyway", SSH_CONNECTION=session)
            assert code == 2, words
            assert "your own session" in words, words
            assert name in words, words


def test_a_server_that_was_killed_leaves_no_claim(network: Any, serve: Serve) -> None:
    near, _ = network.veth()
    for _ in range(3):
        server = ready(serve(near))
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
    until = time.monotonic() + PATIENCE_S
    while "allosaur/interface" in (text := Path("/proc/net/unix").read_text(encoding="utf-8")):
        index = Path(f"/sys/class/net/{near}/ifindex").read_text(encoding="ascii").strip()
        if f"@allosaur/interface/{index}\n" not in text:
            break
        assert time.monotonic() < until, text
        time.sleep(0.05)
    ended(ready(serve(near)))
