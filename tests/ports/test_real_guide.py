"""The guide about real devices: its commands make them, and its profiles run in front of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDE = ROOT / "docs" / "guide" / "real-devices.md"

# All of it in namespaces of its own, which end with the shell: the guide's names are for everybody.
SHELL = """
set -e
mount -t tmpfs tmpfs /run/netns
ip link set lo up
PATH="$BIN:$PATH"
cd "$FOLDER"
ln -s "$ROOT/profiles" profiles
serve() {
    allosaur server --config $1.yaml > $1.log 2>&1 &
    server=$!
    for _ in $(seq 100); do grep -q . $1.log && break; sleep 0.1; done
    # The port asks for its gateway once a second.
    sleep 1.5
}
rest() { kill $server; wait $server || true; }
"""


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def run(folder: Path, parts: list[str]) -> str:
    environment = {
        **os.environ,
        "FOLDER": str(folder),
        "BIN": str(Path(sys.executable).parent),
        "ROOT": str(ROOT),
    }
    script = SHELL + "\n".join(parts).replace("sudo ", "").replace("-d 5", "-d 1")
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "bash", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environment)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_guide_works_from_its_first_line_to_its_last(
    devices: ModuleType, real: Any, tmp_path: Path
) -> None:
    web, ask, people, curl, router, through, nat = blocks("bash")
    for name, text in zip(["clients", "servers", "both"], blocks("yaml"), strict=True):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    for name, text in zip(["asks", "serves"], blocks("python"), strict=True):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    away = "ip link del tg0; ip link del tg1"
    parts = [web, "serve clients", ask, "rest", people, "serve servers", curl, "rest", away]
    parts += [router, "serve both", through, nat, "rest"]
    output = run(tmp_path, parts)
    begun = [int(flows) for flows in re.findall(r"opened flows +(\d+) ", output)]
    assert begun == [500, 20, 20]
    assert output.count("OK: all flows that were offered began and completed") == 3
    # What the kernel counted of them: nginx and the router's memory of them.
    assert re.search(r"TcpPassiveOpens +500 ", output) and "\n500\n" in output
    assert output.endswith("\n20\n")
    assert output.count("hello\n") == 2
    assert "Stopped '_'." in output
