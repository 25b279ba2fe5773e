"""A transcript of each command of the stateless console, on in-memory ports, in one session."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLClient
from allosaur.cli._main import main
from allosaur.cli._modes import STATELESS
from allosaur.cli.console import _loop
from allosaur.cli.console._completion import completions
from allosaur.cli.console._prompt_text import prompt_text
from allosaur.cli.console._session import Session, Settings, Target, opened
from allosaur.cli.console.commands import of_mode
from allosaur.cli.trex._console import main as trex_console
from allosaur.server import LocalServer
from allosaur.testing import MockTransport

PROFILE = """
from allosaur.api import *

class Measured:
    def get_streams(self, direction=0, size=64, **kwargs):
        packet = Ether()/IP(src="16.0.0.1", dst="48.0.0.1")/UDP(sport=1025, dport=12)/Raw(b"x" * (size - 46))
        mode, stats = STLTXCont(pps=100), STLFlowLatencyStats(8)
        counted = STLStream("counted", STLPktBuilder(packet), mode, flow_stats=STLFlowStats(7))
        measured = STLStream("measured", STLPktBuilder(packet), STLTXCont(pps=10), flow_stats=stats)
        return [counted, measured]

def register():
    return Measured()
"""
ASKED = """
import argparse
from allosaur.api import *

class Asked:
    def get_streams(self, direction, tunables, **kwargs):
        parser = argparse.ArgumentParser()
        parser.add_argument("--size", type=int, default=64)
        return [STLStream(packet=STLPktBuilder(Ether() / Raw(bytes(parser.parse_args(tunables).size))))]

def register():
    return Asked()
"""
BURST = PROFILE.replace("STLTXCont(pps=100)", "STLTXSingleBurst(pps=1000, total_pkts=50)").replace(
    "return [counted, measured]", "return [counted]"
)
DOWN = 'Ether()/IP(src="16.0.0.1",dst="48.0.0.1")/UDP(sport=1, dport=12)'

TRANSCRIPT: list[tuple[str, int, list[str]]] = [
    ("help", 0, ["Stateless:", "start", "tui", "Not yet here:", "plugins"]),
    ("help start", 0, ["--total", "example: start -f imix"]),
    ("?stats", 0, ["--lh"]),
    ("start --help", 0, ["-m RATE"]),
    ("strt -p 0", 2, ["there is no command 'strt'; did you mean start?"]),
    ("start -p 0", 2, ["-f is missing"]),
    ("start -f no_such_profile -p 0", 2, ["no such file"]),
    ("start -f {profile} -p 9", 2, ["there is no port 9; there are 0, 1"]),
    ("start -f {profile} -p 0 -m fast", 2, ["fast"]),
    ("start -f {profile} -p 0 -d soon", 2, ["'soon' is not a time"]),
    ("start -f {folder}/asked.py -p 0 -t -h", 0, ["--size SIZE"]),
    ("start -f {folder}/asked.py -p 0 -t --colour red", 2, ["unrecognized arguments", "asked.py"]),
    ("start -f {profile} -p 0 -t color=red", 0, ["Starting traffic on port(s) [0._]:", "[SUCCESS]"]),
    ("start -f {profile} -p 0", 3, ["sends already", "--force"]),
    ("start -f {profile} -p 0 --force -t size=128", 0, ["[SUCCESS]"]),
    ("streams", 0, ["Port 0:", "counted", "Ethernet:IP:UDP:Raw", "Continuous", "100 pps", "128"]),
    ("streams -p 0 -i 2 --code", 0, ["STLFlowLatencyStats", "STLTXCont(pps=10)"]),
    ("streams -p 0 --code {folder}/saved.py", 0, ["Saving file as"]),
    ("streams -p 0 --code {folder}/saved.py", 2, ["is there already"]),
    ("streams -p 1", 0, ["No streams found"]),
    ("profiles", 0, ["Profile ID", "TX", "1, 2"]),
    ("pause", 0, ["Pausing traffic on port(s) [0._]:", "[SUCCESS]"]),
    ("pause", 3, ["no port sends"]),
    ("resume -p 0", 0, ["Resuming traffic on port(s) [0._]:"]),
    ("pause -p 0 -i 1", 0, ["[SUCCESS]"]),
    ("resume -p 0 -i 1", 0, ["[SUCCESS]"]),
    ("update -m 2", 0, ["Updating traffic on port(s) [0._]:"]),
    ("update -p 0 -i 1 -m 50pps", 0, ["[SUCCESS]"]),
    ("update -p 1 -m 2", 3, ["none of [1._] sends"]),
    ("stats", 0, ["Global Statistics", "Port Statistics", "TRANSMITTING", "total"]),
    ("stats -g", 0, ["connection", "total_pps", "queue_full"]),
    ("stats -p --port 0", 0, ["opackets", "Tx pps"]),
    ("stats --ps -a", 0, ["link status", "ARP Resolution"]),
    ("stats -s", 0, ["PG ID", "7", "opackets"]),
    ("stats -l", 0, ["Latency Statistics", "Jitter", "p99", "Errors"]),
    ("stats --lh", 0, ["- Counters -", "out_of_order"]),
    ("stats -c", 0, ["Cpu Util(%)", "Thread"]),
    ("stats -m", 0, ["Mbuf Util", "total"]),
    ("stats -x", 0, ["Name:", "Port 0:"]),
    ("stats --xz", 0, ["rx_good_packets"]),
    ("stats -g -p", 2, ["not allowed with"]),
    ("clear", 0, ["Clearing stats of port(s) [0, 1]"]),
    ("stop -p 0 --remove", 0, ["Stopping traffic on port(s) [0._]:"]),
    ("stop", 0, ["no active ports"]),
    ("start -f {burst} -p 0.web 1 -m 1", 0, ["[0.web, 1._]"]),
    ("wait -t 30", 0, ["[SUCCESS]"]),
    ("profiles -p 0", 0, ["web"]),
    ("stop -a --remove", 0, ["[SUCCESS]"]),
    ("start -f {burst} -p 0 -n", 0, ["port 0: 1.00 kpps", "Nothing was sent."]),
    ("start -f {burst} -p 0 -d 1 --total --pin -m 20%; wait", 0, ["Starting", "Waiting"]),
    ("service", 0, ["Enabling service mode on port(s) [0, 1]"]),
    ("service -p 1 --bgp --dhcp", 0, ["Enabling filtered service mode on port(s) [1]"]),
    ("service -p 1", 0, ["Enabling service mode"]),
    ("l3 -p 1 --src 192.0.2.2 --dst 192.0.2.3", 3, ["no gateway found"]),
    ("l3 -p 0 --src 192.0.2.1 --dst 192.0.2.2", 0, ["192.0.2.2 is at 02:a1:05:00:00:01", "[SUCCESS]"]),
    ("l3 -p 0 --src nonsense --dst 192.0.2.2", 2, ["is not an IP address"]),
    ("arp -p 0 -r 1", 0, ["Resolved port 0"]),
    ("ping -p 0 -d 192.0.2.2 -n 1", 0, ["Reply from 192.0.2.2"]),
    ("ping", 0, ["Pinging RPC server", "[SUCCESS]"]),
    ("ping -p 0", 2, ["give both -p PORT and -d IP"]),
    ("scan6 -p 0 -t 1", 0, [""]),
    ("map", 0, ["port 0 <--> port 1"]),
    ("ns list", 0, ["There are no nodes."]),
    ("ns exec 192.0.2.9 -- true", 2, ["no port has a node 192.0.2.9", "`ns list`"]),
    ("capture", 0, ["Nothing is captured."]),
    ("capture record start --rx 1 --limit 10 -f udp port 12", 0, ["Capturing ID is set to '"]),
    ("capture monitor start --rx 1 -o {folder}/watched.pcap", 0, ["The monitor writes to"]),
    ("capture show", 0, ["Active Recorders", "[0/10]", "udp port 12", "Active Monitor"]),
    ("pkt -p 0 -s " + DOWN, 0, ["Pushing 1 packets on port(s) [0]"]),
    ("capture record stop -i 99 -o x.pcap", 2, ["-i 99: is not captured"]),
    ("capture record stop -i {capture} -o {folder}/udp.pcap", 0, ["Writing 1 packets to"]),
    ("capture monitor stop", 0, ["Stopping the monitor"]),
    ("capture record start", 2, ["--tx or --rx"]),
    ("capture clear", 0, ["Removing all captures"]),
    ("pkt -n -s " + DOWN, 0, ["Packet (Size: 42 B)", "48.0.0.1", "Nothing was sent."]),
    ("pkt -p 0 -s Ether()/IPP()", 2, ["there is no layer IPP"]),
    ("pkt -p 0 -s __import__('os').getcwd()", 2, ["not a packet"]),
    ("pkt --layers", 0, ["Ether ", "DHCP "]),
    ("push -p 0 -f {folder}/udp.pcap --ipg 100 --force; wait", 0, ["Pushing local PCAP on port(s) [0]:"]),
    ("push -p 0 -f {folder}/udp.pcap -r --ipg 100 --force; stop", 0, ["Pushing remote PCAP"]),
    ("push -p 0 -f nowhere.pcap", 2, ["nowhere.pcap: no such file"]),
    ("service --off", 0, ["Disabling service mode"]),
    ("portattr", 0, ["Port Status", "src MAC", "02:a1:05:00:00:00"]),
    ("portattr -p 0 --prom on", 0, ["Applying attributes on port(s) [0]"]),
    ("portattr --supp", 0, ["Promiscuous:"]),
    ("l2 -p 0 --dst 02:a1:05:00:00:01", 0, ["Setting port 0 in L2 mode"]),
    ("l2 -p 0 --dst nonsense", 2, ["MAC address"]),
    ("ipv6 -p 0 --src 2001:db8::1", 0, ["Configuring IPv6 of port 0"]),
    ("ipv6 -p 0 --off", 0, ["[SUCCESS]"]),
    ("vlan -p 0 --vlan 10 20", 0, ["VLAN [10, 20] on port 0"]),
    ("vxlan -p 0 --vni 7 --local 192.0.2.1 --remote 192.0.2.2", 0, ["VXLAN network 7 on port 0"]),
    ("vxlan -p 0 --vni 16777216 --local 192.0.2.1", 3, ["vxlan", "16777215"]),
    ("vxlan -p 0 -c", 0, ["VXLAN cleared on port 0"]),
    ("vlan -c", 0, ["VLAN cleared on ports 0, 1"]),
    ("global_cfg -t sched_max_stretch=100", 0, ["sched_max_stretch = 100"]),
    ("events", 0, ["Port 0"]),
    ("events -w -c", 0, [""]),
    ("verbose", 0, ["verbose is off"]),
    ("verbose on", 0, ["verbose set to on"]),
    (
        "ping",
        0,
        ["[verbose] Sending Request To Server:\n\n{", '"method": "ping"', "[verbose] Server Response:"],
    ),
    ("verbose off", 0, ["verbose set to off"]),
    ("mode", 0, ["The console is stateless."]),
    ("history", 0, ["1       help", "verbose off"]),
    ("history 1", 0, ["Executing 'help'", "Stateless:"]),
    ("h 9999", 2, ["there are lines 1 to"]),
    ("release -p 1", 0, ["Released port 1"]),
    ("start -f {burst} -p 1", 3, ["port 1 is not ours: `acquire -p 1` takes it"]),
    ("acquire", 0, ["Acquired port 1"]),
    ("acquire -p 1", 3, ["ours already"]),
    ("reset", 0, ["Reset ports 0, 1"]),
    ("disconnect", 0, ["Disconnected from"]),
    ("stats", 3, ["not connected", "`connect` tries"]),
    ("connect -r", 0, ["Connected to"]),
    ("reset", 3, ["this console is read-only"]),
    ("connect", 0, ["ports 0, 1 ours"]),
    ("tui", 3, ["is not a terminal", "`stats` shows the same figures"]),
    ("plugins load emu", 2, ["there is no plugin_emu.py", "commands emu_*"]),
    ("plugins", 0, ["plugin"]),
    ("ns add -p 0", 2, ["MAC is missing"]),
    ("bird set no-such.conf", 2, ["no-such.conf: cannot be read"]),
    *((f"{name} -p 0", 3, ["not here yet"]) for name in of_mode(STATELESS) if name.startswith("tpg_")),
    ("'open", 2, ["no closing quotation"]),
]
ELSEWHERE = {"shell", "debug", "shutdown", "quit", "q", "exit", "EOF"}
"""Commands that have tests of their own here."""


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[LocalServer]:
    captures = ["--captures-folder", str(folder)]
    with LocalServer(ports=["memory", "memory"], cores=1, options=captures) as running:
        yield running


@pytest.fixture(scope="module")
def session(shared: LocalServer) -> Iterator[Session]:
    with opened(Target(shared.host, shared.rpc_port, shared.pub_port), Settings()) as session:
        yield session


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("console")
    (made / "measured.py").write_text(PROFILE, encoding="utf-8")
    (made / "asked.py").write_text(ASKED, encoding="utf-8")
    (made / "burst.py").write_text(BURST, encoding="utf-8")
    return made


def words(server: LocalServer) -> list[str]:
    return ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]


def captured(session: Session) -> int:
    """The first capture, once it has a packet: a packet needs a moment from port to port."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        captures = session.client.get_capture_status()
        if captures and all(one["matched"] for one in captures.values()):
            return min(captures)
        time.sleep(0.01)
    pytest.fail(f"no packet was captured: {session.client.get_capture_status()}")


@pytest.mark.parametrize(("line", "code", "shown"), TRANSCRIPT, ids=[line for line, _, _ in TRANSCRIPT])
def test_transcript(
    line: str, code: int, shown: list[str], session: Session, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = line
    for name, value in {
        "{profile}": folder / "measured.py",
        "{burst}": folder / "burst.py",
        "{folder}": folder,
        "{capture}": captured(session) if "{capture}" in line else 0,
    }.items():
        text = text.replace(name, str(value))
    assert _loop.line(text, session) == code
    out, err = capsys.readouterr()
    for one in shown:
        assert one in out + err, f"{one!r} is not in what {line!r} printed:\n{out}\n{err}"
    assert (code != 0) == any(one.startswith("error: ") for one in err.splitlines()), err
    assert "defect" not in err


def test_every_command_is_in_the_transcript() -> None:
    tried = {part.split()[0] for line, _, _ in TRANSCRIPT for part in line.split(";") if part.strip()}
    assert set(of_mode(STATELESS)) - ELSEWHERE - tried == set()


def test_the_example_of_each_command_is_one(session: Session) -> None:
    from allosaur.cli.console import _line

    for command in of_mode(STATELESS).values():
        name, *rest = _line.words(command.example, of_mode(STATELESS))
        assert name == command.name
        assert _line.parser_of(command).parse_known_args(rest)[1] == []


def test_the_monitor_shows_packets_beside_the_commands(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in ("service", "capture monitor start --rx 1 -v", f"pkt -p 0 -s {DOWN}"):
        assert _loop.line(line, session) == 0
    captured(session)
    assert _loop.line("capture monitor stop; capture; service --off", session) == 0
    out = capsys.readouterr().out
    for words in ("port 1 RX", "UDP 16.0.0.1:1 > 48.0.0.1:12", "###[ UDP ]###", "Nothing is captured."):
        assert words in out


def test_words_are_completed(session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    session.commands = of_mode(STATELESS)
    assert set(completions(session, "sta")) == {"start", "stats"}
    assert completions(session, "start -p ")[:2] == ["0", "1"]
    assert completions(session, "start -p 0 1 -f mea") == ["measured.py"]
    assert "imix" in completions(session, "start -f im")
    assert completions(session, f"push -f {folder}/bur") == [f"{folder}/burst.py"]
    assert completions(session, "portattr --prom ") == ["on", "off"]
    assert "--supp" in completions(session, "portattr --")
    assert completions(session, "capture rec") == ["record"]
    assert completions(session, "capture record s") == ["start", "stop"]
    assert "--rx" in completions(session, "capture record start -")
    assert completions(session, "help capt") == ["capture"]
    assert completions(session, "stop; verbose o") == ["on", "off"]
    assert completions(session, "nonsense ") == []
    _loop.line(f"start -f {folder}/burst.py -p 0.web", session)
    assert completions(session, "streams -i ") == ["1"]
    assert "0.web" in completions(session, "stop -p ")
    _loop.line("reset", session)
    assert prompt_text(session) == "allosaur(stateless, all ports)> "


def test_a_file_of_commands_ends_at_the_first_that_fails(
    shared: LocalServer, session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _loop.line("disconnect", session)
    batch = tmp_path / "batch.txt"
    batch.write_text("# a comment\n\nping\nstats -p --port 0\nstart -f nothing\nping\n", encoding="utf-8")
    assert main(["console", *words(shared), "--batch", str(batch)]) == 2
    out, err = capsys.readouterr()
    assert "Executing line 5 : 'start -f nothing'" in out and "line 6" not in out
    assert "batch.txt, line 5 failed" in err
    batch.write_text("ping\nquit\nnonsense\n", encoding="utf-8")
    assert main(["console", *words(shared), "--batch", str(batch)]) == 0
    assert main(["console", *words(shared), "--batch", str(tmp_path / "none")]) == 2
    assert main(["console", *words(shared), "--stateful", "--batch", str(batch)]) in (0, 2)
    _loop.line("connect", session)


def test_a_pipe_of_commands_goes_on_and_json_is_one_object_a_line(
    shared: LocalServer, session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("stats -p\nstart\nreset\nacquire\nquit\nping\n"))
    assert main(["console", *words(shared), "--readonly", "--json"]) == 2
    replies = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["command"] for one in replies] == ["stats", "start", "reset", "acquire", "quit"]
    assert [one["ok"] for one in replies] == [True, False, False, False, True]
    assert replies[0]["ports"]["0"]["oerrors"] == 0
    assert replies[2]["error"] == "reset: this console is read-only; `acquire` takes the ports"
    assert "already" in replies[3]["error"] or "owned" in replies[3]["error"]


def test_another_user_is_not_disturbed_unless_forced(
    shared: LocalServer, session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("ping\nquit\n"))
    assert main(["console", *words(shared)]) == 3
    assert "cannot own the ports" in capsys.readouterr().err
    assert main(["console", *words(shared), "--force"]) == 0
    assert _loop.line("start -f imix -p 0", session) == 3
    error = capsys.readouterr().err
    assert "port 0 is not ours (user" in error and "`acquire -p 0 --force` takes it" in error
    assert _loop.line("acquire", session) == 0


def test_shell_says_what_to_install(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "IPython.terminal.embed", None)
        assert _loop.line("shell", session) == _loop.line("debug", session) == 3
    assert "pip install ipython" in capsys.readouterr().err


def test_a_server_that_goes_away(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalServer(ports=["memory", "memory"], cores=1) as server:
        target = Target(server.host, server.rpc_port, server.pub_port)
        with opened(target, Settings()) as session:
            assert _loop.line("shutdown", session) == 0
            server.stop()
            assert _loop.line("ping", session) == 3
            # Whether the request or the thread of events misses the server first is not said.
            deadline = time.monotonic() + 60
            while session.is_connected and time.monotonic() < deadline:
                time.sleep(0.05)
            assert prompt_text(session) == "allosaur(offline)> "
            assert _loop.line("connect", session) == 3
            assert _loop.line("quit", session) == 0
            assert session.is_over
    assert "no server answers" in capsys.readouterr().err
    assert main(["console", "--server", f"{target.host}:{target.rpc_port}", "--batch", "-"]) == 3


def test_shell_has_the_client(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    opened_with: list[dict[str, Any]] = []

    class Embedded:
        def __init__(self, **settings: Any) -> None:
            opened_with.append(settings)

        def __call__(self) -> None:
            opened_with[-1]["ran"] = True

    embed, config = types.ModuleType("embed"), types.ModuleType("config")
    embed.InteractiveShellEmbed = Embedded  # type: ignore[attr-defined]
    config.Config = lambda: types.SimpleNamespace(  # type: ignore[attr-defined]
        TerminalInteractiveShell=types.SimpleNamespace(confirm_exit=True)
    )
    for name, module in (("IPython", embed), ("IPython.terminal", embed), ("IPython.terminal.embed", embed)):
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("traitlets", "traitlets.config"):
        monkeypatch.setitem(sys.modules, name, config)
    assert _loop.line("shell", session) == 0
    assert opened_with[0]["user_ns"]["client"] is session.client and opened_with[0]["ran"]
    assert opened_with[0]["config"].TerminalInteractiveShell.confirm_exit is False


def test_ctrl_c_in_a_file_of_commands_ends_it(
    shared: LocalServer, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **more: object) -> None:
        raise KeyboardInterrupt

    batch = tmp_path / "batch.txt"
    batch.write_text("wait\nping\n", encoding="utf-8")
    monkeypatch.setattr(STLClient, "wait_on_traffic", interrupted)
    assert main(["console", *words(shared), "--readonly", "--batch", str(batch)]) == 130


def test_a_closed_pipe_is_no_error(shared: LocalServer) -> None:
    command = f"{sys.executable} -m allosaur.cli console --readonly {' '.join(words(shared))}"
    lines = "help\\n" * 2000
    done = subprocess.run(
        ["bash", "-c", f"printf '{lines}' | {command} | head -1"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.stderr == ""


def test_trex_console(
    shared: LocalServer,
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    where = ["-s", shared.host, "-p", str(shared.rpc_port), "--async_port", str(shared.pub_port)]
    batch = tmp_path / "batch.txt"
    batch.write_text("ping\nstats -p\n", encoding="utf-8")
    # After the file comes what is typed, and nothing that a command does is told by the exit code.
    monkeypatch.setattr("sys.stdin", io.StringIO("nonsense\nstats -g\nquit\nping\n"))
    assert trex_console([*where, "-r", "--batch", str(batch)]) == 0
    out, err = capsys.readouterr()
    assert "Read only mode" in out and "Executing line 2 : 'stats -p'" in out and "total_pps" in out
    assert err == "error: there is no command 'nonsense'; see `help`\n"
    assert trex_console([*where]) == 0
    assert "cannot own the ports" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("ping\n"))
    assert trex_console([*where, "-r", "-t"]) == 0
    out, err = capsys.readouterr()
    assert "is not a terminal" in err and "Ping" in out
    assert trex_console(["--emu-only-server", "--emu-server-port", "1"]) == 0
    assert "no emulated clients at localhost:1" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        trex_console(["--batch", str(tmp_path / "none")])
    assert trex_console(["-p", "1"]) == 0
    # A script must know that its lines were not done.
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("ping\nnonsense\nping\n", encoding="utf-8")
    assert trex_console([*where, "-r", "--batch", str(wrong)]) == 2
    assert "wrong.txt, line 2 failed; nothing behind it was done" in capsys.readouterr().err
    assert trex_console(["-p", "1", "--batch", str(batch)]) == 3
    assert "no server answers" in capsys.readouterr().err


def test_the_prompt_of_trex(session: Session) -> None:
    session.settings.is_trex = True
    seen = []
    for line in (
        "ping",
        "service -p 0",
        "service",
        "service --all",
        "service --off",
        "release -p 1",
        "release",
    ):
        assert _loop.line(line, session) == 0
        seen.append(prompt_text(session))
    assert seen == [
        *("trex>", "trex(service: 0)>", "trex(service)>", "trex(service-filtered)>", "trex>"),
        *("trex (ports: 0)>", "trex(read-only)>"),
    ]
    session.settings.is_trex = False
    assert _loop.line("acquire", session) == 0


def test_a_server_of_one_mode_is_met_by_what_it_says(
    serve: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mock = MockTransport()
    with serve(mock) as served:
        monkeypatch.setattr("sys.stdin", io.StringIO("mode\nmode stateful\nping\n"))
        assert main(["console", *words(served)]) == 2
        out, err = capsys.readouterr()
        assert "The console is stateless." in out and "[SUCCESS]" in out
        assert "is for stateless traffic only: stay stateless" in err
        assert main(["console", *words(served), "--stateful"]) == 2
        mock.answer("get_version", {"version": "v2.41", "mode": "STF"})
        assert main(["console", *words(served)]) == 3
    assert "is in mode STF, which has no console" in capsys.readouterr().err
