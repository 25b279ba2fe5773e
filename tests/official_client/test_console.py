"""The console of TRex's official client, in batch mode, against our server."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from allosaur import STLError, STLPktBuilder, STLStream, STLTXCont
from allosaur.server import LocalServer

HERE = Path(__file__).resolve().parent
OURS = "from allosaur.cli.trex._console import main; raise SystemExit(main())"

PROFILE = '''
"""One stream of 64-byte frames."""
from trex_stl_lib.api import *


class OneStream:
    def get_streams(self, direction=0, **kwargs):
        packet = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025) / (b"x" * 18)
        mode = STLTXSingleBurst(pps=100000, total_pkts=5000)
        return [STLStream(packet=STLPktBuilder(pkt=packet), mode=mode)]


def register():
    return OneStream()
'''

COMMANDS = """
portattr
start -f {profile} -p 0 -m 1
streams
stop -a
ping
stats -p
events
"""


def run_console(
    python: str, environment: dict[str, str], server: LocalServer, *more: str, typed: str = ""
) -> str:
    """What the console printed, without colours. `typed` is what a user types."""
    options = ["-s", server.host, "-p", str(server.rpc_port), "--async_port", str(server.pub_port), *more]
    command = [python, "-W", "ignore", str(HERE / "console.py"), *options]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=110, check=False, input=typed, env=environment
    )
    output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    assert "Traceback" not in output + done.stderr, f"{output}\n{done.stderr}"
    return output


def test_a_batch_of_commands(
    client_python: str, client_environment: dict[str, str], server: LocalServer, tmp_path: Path
) -> None:
    profile = tmp_path / "one_stream.py"
    profile.write_text(PROFILE, encoding="utf-8")
    batch = tmp_path / "batch.txt"
    batch.write_text(COMMANDS.format(profile=profile), encoding="utf-8")
    output = run_console(client_python, client_environment, server, "--batch", str(batch))
    # The console stops at the first line that fails; this is its last.
    assert "Executing line 8" in output, output
    assert "[FAILED]" not in output, output
    for words in ("Server mode:      Stateless", "02:a1:05:00:00:01", "Single Burst", "ping"):
        assert words.lower() in output.lower(), f"{words}\n{output}"


MEASURED = PROFILE.replace(
    "return [STLStream(packet=STLPktBuilder(pkt=packet), mode=mode)]",
    """builder = STLPktBuilder(pkt=packet)
        counted = STLStream(packet=builder, mode=STLTXCont(pps=1000), flow_stats=STLFlowStats(7))
        measured = STLStream(packet=builder, mode=STLTXCont(pps=100), flow_stats=STLFlowLatencyStats(8))
        return [counted, measured]""",
)

ALL_COMMANDS = """
portattr -p 0 --prom on
service
l3 -p 0 --src 192.0.2.1 --dst 192.0.2.2
arp -p 0
ping -p 0 -d 192.0.2.2 -n 2
push -p 0 -f {capture} --ipg 100 --force
push -p 0 -f {capture} --ipg 100 --force -r
stop -p 0
l2 -p 0 --dst 02:a1:05:00:00:01
l2 -p 1 --dst 02:a1:05:00:00:00
map
vlan -p 0 --vlan 10
vlan -p 0 -c
service --off
start -f {profile} -p 0 -m 1
pause -p 0
resume -p 0
update -p 0 -m 2kpps
stats -p
stats -s
stats -l
stats -g
stats -x
stop -p 0
streams
clear
events
reset
"""

SHOWN = [
    "Applying attributes on port(s) [0]",
    "Port 0 - Recieved ARP reply from: 192.0.2.2, hw: 02:a1:05:00:00:01",
    "Reply from 192.0.2.2: bytes=64",
    "Pushing remote PCAP on port(s) [0]",
    "port 0 <--> port 1",
    "Pausing traffic on port(s) [0._]",
    "Updating traffic on port(s) [0._]",
    "Port Statistics",
    "Streams Statistics",
    "Latency Statistics",
    "Jitter",
    "rx_good_packets",
    "Ethernet:IP:UDP:Raw",
    "Port 0 has resumed",
]
"""What the console must have shown, in this order."""


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A capture of 30 packets, 90 bytes each."""
    headers = bytes.fromhex("02a10500000102a1050000000800") + bytes.fromhex(
        "4500004c00010000400600000a0000010a000002"
    )
    frame = headers + bytes.fromhex("0401005000000000000000005002200000000000") + b"x" * 36
    path = tmp_path / "traffic.pcap"
    records = [struct.pack("<IIII", 0, n, len(frame), len(frame)) + frame for n in range(30)]
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(records))
    return path


@pytest.fixture
def with_a_host(server: LocalServer) -> LocalServer:
    """A server whose port 1 has an address already, so that port 0 finds it."""
    with server.client(username="before") as client:
        client.acquire(ports=[1])
        client.set_service_mode(ports=[1])
        with pytest.raises(STLError, match="no gateway found"):
            client.set_l3_mode(1, "192.0.2.2", "192.0.2.1")
        client.set_service_mode(ports=[1], enabled=False)
    return server


def test_a_long_batch_of_every_kind_of_command(
    client_python: str,
    client_environment: dict[str, str],
    with_a_host: LocalServer,
    capture: Path,
    tmp_path: Path,
) -> None:
    profile = tmp_path / "measured.py"
    profile.write_text(MEASURED, encoding="utf-8")
    batch = tmp_path / "batch.txt"
    batch.write_text(ALL_COMMANDS.format(profile=profile, capture=capture), encoding="utf-8")
    output = run_console(client_python, client_environment, with_a_host, "--batch", str(batch))
    assert "Executing line 29 : 'reset'" in output, output
    assert "[FAILED]" not in output, output
    assert "usage:" not in output, output
    at = 0
    for words in SHOWN:
        found = output.find(words, at)
        assert found >= 0, f"{words}\n{output[at:]}"
        at = found


def test_our_console_does_the_same_batch(with_a_host: LocalServer, capture: Path, tmp_path: Path) -> None:
    profile = tmp_path / "measured.py"
    profile.write_text(MEASURED, encoding="utf-8")
    batch = tmp_path / "batch.txt"
    batch.write_text(ALL_COMMANDS.format(profile=profile, capture=capture), encoding="utf-8")
    where = ["-s", with_a_host.host, "-p", str(with_a_host.rpc_port)]
    done = subprocess.run(
        [sys.executable, "-c", OURS, *where, "--async_port", str(with_a_host.pub_port), "--batch", batch],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        input="",
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "Executing line 29 : 'reset'" in done.stdout and "[Done]" in done.stdout


TYPED = """
service
capture record start --rx 1 --limit 100 -f "tcp dst port 80"
capture record start --rx 1 --limit 100 -f "udp"
capture monitor start --rx 1
push -p 0 -f {capture} --ipg 100 --force
shell sleep 0.3
capture
capture monitor stop
capture record stop -i 1 -o {folder}/tcp.pcap
capture record stop -i 2 -o {folder}/udp.pcap
quit
"""


def test_captures_are_recorded_and_watched_by_typing(
    client_python: str, client_environment: dict[str, str], server: LocalServer, capture: Path, tmp_path: Path
) -> None:
    typed = TYPED.format(capture=capture, folder=tmp_path)
    output = run_console(client_python, client_environment, server, typed=typed)
    assert "[FAILED]" not in output, output
    assert "[30/100]" in output, output
    assert "[0/100]" in output, output
    assert f"Writing up to 30 packets to '{tmp_path}/tcp.pcap'" in output, output
    # The header of the file, and what came: 30 packets with 16 bytes of their own header each.
    assert (tmp_path / "tcp.pcap").stat().st_size == 24 + 30 * (16 + 90)


def test_a_read_only_console_sees_and_does_not_touch(
    client_python: str, client_environment: dict[str, str], server: LocalServer, tmp_path: Path
) -> None:
    profile = tmp_path / "one_stream.py"
    profile.write_text(PROFILE, encoding="utf-8")
    frame = bytes(12) + b"\x08\x00" + bytes(46)
    with server.client(username="somebody") as owner:
        owner.reset()
        owner.add_streams(
            STLStream(packet=STLPktBuilder(pkt_buffer=frame), mode=STLTXCont(pps=100)), ports=[0]
        )
        owner.start(ports=[0])
        typed = f"portattr -p 0 1\nstats --port 0 1\nstop -p 0\nstart -f {profile} -p 1 --force\nquit\n"
        output = run_console(client_python, client_environment, server, "-r", typed=typed)
        assert "Read only mode" in output, output
        assert "somebody" in output, output
        assert "TRANSMITTING" in output, output
        assert "[SUCCESS]" not in output.split("Type 'help'")[1], output
        assert owner.get_acquired_ports() == [0, 1]
        assert owner.get_active_ports() == [0]
