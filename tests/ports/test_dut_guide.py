"""The guide about devices under test: its commands make the devices, and its script finds nothing lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

GUIDE = Path(__file__).resolve().parent.parent.parent / "docs" / "guide" / "device-under-test.md"

# All of it in namespaces of its own, which end with the shell: the guide's names are for everybody.
SHELL = """
set -e
mount -t tmpfs tmpfs /run/netns
ip link set lo up
cd "$FOLDER"
serve() {
    "$BIN/allosaur" server --ports tg0,tg1 > server.log 2>&1 &
    server=$!
    for _ in $(seq 100); do grep -q . server.log && return; sleep 0.1; done
}
"""


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def run(folder: Path, parts: list[str]) -> str:
    environment = {**os.environ, "FOLDER": str(folder), "BIN": str(Path(sys.executable).parent)}
    script = SHELL + "\n".join(parts).replace("sudo ", "")
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "bash", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environment)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def groups(output: str) -> list[tuple[int, int, int]]:
    found = re.findall(r"group (\d+): (\d+) sent, (\d+) received", output)
    return [(int(group), int(sent), int(received)) for group, sent, received in found]


def test_the_guide_works_from_its_first_line_to_its_last(devices: ModuleType, tmp_path: Path) -> None:
    (script,) = blocks("python")
    router, ask, nat, connections, bridge, away = blocks("bash")
    (tmp_path / "device.py").write_text(script.replace("duration=5", "duration=1"), encoding="utf-8")
    hosts = re.search(r"    # The ports are hosts.*?(?=    streams)", script, re.DOTALL)
    assert hosts is not None
    without = script.replace(hosts[0], "").replace("duration=5", "duration=1")
    (tmp_path / "bridged.py").write_text(without, encoding="utf-8")
    send = '"$BIN/python" device.py'
    parts = [router, "serve", send, ask, nat, send, connections, "kill $server; wait $server || true"]
    parts += [bridge, "serve", '"$BIN/python" bridged.py', away]
    output = run(tmp_path, parts)
    assert [group for group, _, _ in groups(output)] == [1, 2, 3] * 3
    assert all(sent == received > 0 for _, sent, received in groups(output))
    assert len(re.findall(r"latency: median [0-9.]+ µs", output)) == 3
    assert "Ip: Forwarding" in output
    # The NAT gave the three flows its own address.
    assert len(re.findall(r"dst=10\.0\.1\.1 ", output)) == 3
