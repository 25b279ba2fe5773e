"""The console of TRex's official client, in batch mode, against our server."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from allosaur.server import LocalServer

HERE = Path(__file__).resolve().parent

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


def run_console(python: str, environment: dict[str, str], server: LocalServer, batch: Path) -> str:
    """What the console printed, without colours."""
    options = ["-s", server.host, "-p", str(server.rpc_port), "--async_port", str(server.pub_port)]
    command = [python, "-W", "ignore", str(HERE / "console.py"), *options, "--batch", str(batch)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        stdin=subprocess.DEVNULL,
        env=environment,
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
    output = run_console(client_python, client_environment, server, batch)
    # The console stops at the first line that fails; this is its last.
    assert "Executing line 8" in output, output
    assert "[FAILED]" not in output, output
    for words in ("Server mode:      Stateless", "02:a1:05:00:00:01", "Single Burst", "ping"):
        assert words.lower() in output.lower(), f"{words}\n{output}"
