"""What the README and the guides show works: their scripts run, their links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from allosaur.server import LocalServer

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def run_script(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_readme_script_runs() -> None:
    script = next(block for block in python_blocks(ROOT / "README.md") if "LocalServer" in block)
    run_script(script)


def test_first_script_runs(server: LocalServer) -> None:
    script = next(
        block for block in python_blocks(ROOT / "docs/guide/getting-started.md") if "wait_on_traffic" in block
    )
    address = f'server="{server.host}", sync_port={server.rpc_port}, async_port={server.pub_port}'
    asked = 'server="127.0.0.1"'
    assert asked in script
    words = run_script(script.replace(asked, address)).split()
    sent, received = int(words[1]), int(words[3])
    assert sent == received > 0


def test_profile_of_the_guide_loads_and_simulates(tmp_path: Path) -> None:
    profile = tmp_path / "guide.py"
    profile.write_text(python_blocks(ROOT / "docs/guide/profiles.md")[0], encoding="utf-8")
    output = tmp_path / "out.pcap"
    command = [Path(sys.executable).parent / "allosaur", "sim", profile, "-o", output, "--limit", "10"]
    done = subprocess.run(
        [*command, "-t", "size=128"], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    # A pcap file: a header of 24 bytes, and 10 packets of 124 with 16 bytes in front of each.
    assert output.stat().st_size == 24 + 10 * (16 + 124)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
