"""`t-rex-64`: TRex's options and configuration start our server, as start scripts expect."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from allosaur import ASTFClient, STLClient
from allosaur.cli.trex import _options

pytestmark = pytest.mark.usefixtures("binary")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "wheel-data" / "scripts" / "t-rex-64"
HTTP = ROOT / "profiles" / "stateful" / "http.py"
ENDED_S = 20

Launch = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Start the launcher; whatever is still running at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*words: object) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        started.append(
            subprocess.Popen(
                [sys.executable, str(SCRIPT), *map(str, words)],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration in TRex's form for a lab with two ports, on free TCP ports."""
    path = tmp_path / "trex_cfg.yaml"
    path.write_text(
        "### made for a test\n"
        "- version: 2\n"
        "  interfaces: ['memory', 'memory', 'memory', 'dummy']\n"
        "  port_limit: 2\n"
        "  c: 1\n"
        "  zmq_rpc_port: 0\n"
        "  zmq_pub_port: 0\n"
        "  port_info:\n"
        "    - dest_mac: 02:00:00:00:00:0b\n"
        "      src_mac: 02:00:00:00:00:0a\n"
        "    - ip: 10.1.1.2\n"
        "      default_gw: 10.1.1.1\n",
        encoding="utf-8",
    )
    return path


def output(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def line_with(process: subprocess.Popen[str], words: str) -> str:
    """The first line of the output that has these words."""
    lines = []
    for line in output(process):
        lines.append(line)
        if words in line:
            return line
    pytest.fail(f"no line has {words!r}: {lines}, {process.communicate()[1]}")


def ready(process: subprocess.Popen[str]) -> tuple[int, int]:
    """The TCP ports of requests and events, once the server says that it is ready."""
    facts = dict(word.partition("=")[::2] for word in line_with(process, "ready ").split())
    return tuple(int(facts[name].rpartition(":")[2]) for name in ("rpc", "pub"))  # type: ignore[return-value]


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What is left of the output, and the error stream."""
    out, err = process.communicate(timeout=ENDED_S)
    return out, err


def test_a_start_script_s_server_serves_clients_and_stops_cleanly(launch: Launch, config: Path) -> None:
    process = launch(
        *("--prefix", "lab1", "-i", "--stl", "-c", "2", "--cfg", config, "--iom", "0", "-v", "1"),
        *("--hdrh", "--software", "--no-ofed-check", "--no-scapy-server", "--no-watchdog", "--mlx5-so"),
    )
    said = line_with(process, "all addresses")
    assert "as TRex does" in said
    rpc_port, pub_port = ready(process)
    for port in (rpc_port, pub_port):
        # On all addresses, so also on one that nobody named; both ports accept when it is ready.
        socket.create_connection(("127.0.0.2", port)).close()
    client = STLClient(server="127.0.0.1", sync_port=rpc_port, async_port=pub_port)
    client.connect()
    try:
        assert client.get_port_count() == 2
        assert client.get_server_system_info()["dp_core_count"] == 2
        ports = client.get_port_info()
    finally:
        client.disconnect()
    assert (ports[0]["hw_mac"], ports[0]["dst_mac"]) == ("02:00:00:00:00:0a", "02:00:00:00:00:0b")
    assert (ports[1]["src_ipv4"], ports[1]["dest"], ports[1]["arp"]) == ("10.1.1.2", "10.1.1.1", "unresolved")
    process.send_signal(signal.SIGINT)
    out, err = ended(process)
    assert process.returncode == 0, err
    assert "-Per port stats table" not in out
    assert "warning:" not in err


@pytest.mark.parametrize("kind", [STLClient, ASTFClient])
@pytest.mark.parametrize("is_promiscuous", [True, False])
def test_prom_is_promiscuous_mode_from_the_start(
    launch: Launch, config: Path, kind: type[STLClient | ASTFClient], is_promiscuous: bool
) -> None:
    mode = ["--astf"] if kind is ASTFClient else []
    process = launch("-i", "--cfg", config, "--iom", "0", *mode, *["--prom"] * is_promiscuous)
    rpc_port, pub_port = ready(process)
    client = kind(server="127.0.0.1", sync_port=rpc_port, async_port=pub_port)
    client.connect()
    try:
        modes = [client.get_port_attr(port)["prom"] for port in (0, 1)]
    finally:
        client.disconnect()
    assert modes == (["on", "on"] if is_promiscuous else ["off", "off"])
    process.send_signal(signal.SIGTERM)
    _, err = ended(process)
    assert process.returncode == 0, err
    assert "warning:" not in err


def test_counters_are_shown_until_it_is_stopped(launch: Launch, config: Path) -> None:
    process = launch("-i", "--cfg", config)
    line_with(process, "-Per port stats table")
    columns = output(process).readline().split("|")
    assert [column.strip() for column in columns] == ["ports", "0", "1"]
    line_with(process, "opackets")
    line_with(process, "-Per port stats table")
    process.send_signal(signal.SIGTERM)
    _, err = ended(process)
    assert process.returncode == 0, err


def test_an_output_that_nobody_reads_stops_nothing(launch: Launch, config: Path) -> None:
    process = launch("-i", "--cfg", config)
    ready(process)
    output(process).close()
    process.send_signal(signal.SIGTERM)
    process.wait(ENDED_S)
    assert process.returncode == 0


def test_a_signal_while_it_starts_ends_it_cleanly(launch: Launch, config: Path) -> None:
    process = launch("-i", "--cfg", config, "--iom=0")
    line_with(process, "all addresses")
    process.send_signal(signal.SIGTERM)
    _, err = ended(process)
    assert process.returncode == 0, err


def test_what_does_nothing_is_named_in_one_line(launch: Launch, config: Path) -> None:
    process = launch(
        *(
            "-i",
            "--cfg",
            config,
            "-k",
            "60",
            "--flip",
            "--scapy-server",
            "--learn-mode",
            "2",
            "--lm",
            "0x1",
            "--iom",
            "0",
        )
    )
    ready(process)
    process.send_signal(signal.SIGTERM)
    _, err = ended(process)
    assert process.returncode == 0, err
    warnings = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1, err
    for name in ("-k, --flip, --learn-mode (", "--scapy-server (", "--lm ("):
        assert name in warnings[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ["no mode", "-i", "-f"]),
        (["--astf"], ["no mode", "-i", "-f"]),
        (["-i", "--astf", "--stl"], ["--astf", "--stl", "one of both"]),
        (["-i", "--astf", "-f", "astf/http.py"], ["-i and -f", "one of both"]),
        (["--astf", "-f", "nowhere/http.py"], ["nowhere/http.py", "no such file"]),
        (["--astf", "-f", str(HTTP), "-m", "5kpps"], ["-m 5kpps", "factor"]),
        (["--astf", "-f", str(HTTP), "-d", "soon"], ["-d soon", "duration"]),
        (["--astf", "-f", str(HTTP), "-l", "0"], ["-l 0", "1 to"]),
        (["--astf", "-f", str(HTTP), "-t", "size"], ["-t size", "key=value"]),
        (["--astf", "-f", str(HTTP), "--astf-client-mask", "all"], ["--astf-client-mask all", "0x1"]),
        (["-f", "cap2/dns.yaml"], ["-f", "--astf", "-i"]),
        (["--ut"], ["--ut"]),
        (["-i", "--warp"], ["'--warp'", "--help"]),
        (["-i", "faster"], ["'faster'", "--help"]),
        (["-i", "-c"], ["-c", "missing"]),
        (["-i", "-c", "0"], ["-c 0", "1 to 64"]),
        (["-i", "-c", "two"], ["-c two"]),
        (["-i", "--limit-ports", "33"], ["--limit-ports", "1 to 32"]),
        (["-i", "--iom", "3"], ["--iom 3", "0 to 2"]),
        (["-i", "-v", "x"], ["-v x"]),
        (["-i", "--stl=1"], ["--stl", "no argument"]),
        (["-i", "--cfg", "nowhere.yaml"], ["nowhere.yaml", "--cfg", "config init"]),
    ],
)
def test_what_cannot_be_is_refused(launch: Launch, config: Path, words: list[str], said: list[str]) -> None:
    with_config = [] if "--cfg" in words else ["--cfg", str(config)]
    out, err = ended(process := launch(*with_config, *words))
    assert process.returncode == 2, err
    assert out == ""
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    for word in said:
        assert word in err


def test_a_port_that_there_cannot_be_is_refused(launch: Launch, config: Path) -> None:
    config.write_text("- version: 2\n  interfaces: ['af_xdp:a:queues=0', 'af_xdp:']\n", encoding="utf-8")
    _, err = ended(process := launch("-i", "--cfg", config))
    assert process.returncode == 2
    for words in (f"{config}:2:16: interfaces[0]: 'af_xdp:a", f"{config}:2:37: interfaces[1]", "queues"):
        assert words in err


def test_help_and_the_guide_name_every_option(launch: Launch) -> None:
    out, err = ended(process := launch("--help"))
    assert (process.returncode, err) == (0, "")
    guide = (ROOT / "docs" / "guide" / "t-rex-64.md").read_text(encoding="utf-8")
    for option in _options.OPTIONS:
        for name in option.names:
            assert f" {name}" in out
        spelled = ", ".join(
            f"`{name}{' ' + option.argument if option.argument else ''}`" for name in option.names
        )
        row = f"| {spelled} | {option.effect.value} | {option.meaning} |"
        assert row in guide, row
