"""What the README and the guides show works: their scripts run, their links lead somewhere."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from allosaur import ASTFClient, ASTFProfile, STLClient
from allosaur.api import UDP, Ether
from allosaur.server import LocalServer
from allosaur.testing import MockTransport

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

FOLDERS = [ROOT / "docs" / "guide", ROOT / "docs" / "commands"]
GUIDES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted(folder.glob("*.md")))]


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


def client_calls(page: Path) -> list[ast.Call]:
    """What the scripts of a page call on `client`."""
    nodes = [node for block in python_blocks(page) for node in ast.walk(ast.parse(block))]
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return [call for call in calls if ast.unparse(call.func).startswith("client.")]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_scripts_call_what_there_is(page: Path) -> None:
    for call in client_calls(page):
        assert isinstance(call.func, ast.Attribute)
        method = getattr(ASTFClient if page.name == "stateful.md" else STLClient, call.func.attr)
        keywords = {keyword.arg: None for keyword in call.keywords if keyword.arg}
        inspect.signature(method).bind(None, *[None for _ in call.args], **keywords)


def test_the_service_of_the_guide_runs() -> None:
    page = ROOT / "docs/guide/service-mode.md"
    script = next(block for block in python_blocks(page) if "class Echo(" in block)
    names: dict[str, Any] = {}
    exec(script, names)
    transport = MockTransport()

    def echo(port: int, frame: bytes) -> None:
        packet = Ether(frame)
        packet[UDP].dport, packet[UDP].sport = packet[UDP].sport, packet[UDP].dport
        transport.receive(port, bytes(packet))

    transport.on_push = echo
    with STLClient(transport=transport) as client:
        client.acquire([0])
        client.set_service_mode([0])
        services = [names["Echo"](udp_port=port) for port in (1000, 1001)]
        client.create_service_ctx(0).run(services)
        assert [service.rtt_s for service in services] == [pytest.approx(0.001), pytest.approx(0.002)]
        context = client.create_service_ctx(0)
        transport.on_push = None
        silent = names["Echo"](udp_port=1002)
        context.run(silent)
        assert silent.rtt_s is None


def test_the_stateful_guide_compiles_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = python_blocks(ROOT / "docs/guide/stateful.md")
    profile = tmp_path / "guide.py"
    profile.write_text(blocks[0], encoding="utf-8")
    fields = ASTFProfile.load(profile, size=5000).to_json()
    assert fields["program_list"][0]["commands"][1] == {"name": "rx", "min_bytes": 5000}
    monkeypatch.chdir(ROOT)
    exec(next(block for block in blocks if "MockStatefulTransport" in block), {})


def test_sudo_of_the_guides_finds_the_command(tmp_path: Path) -> None:
    """Debian's sudo looks into the folders of its secure_path only: `sudo allosaur` is not found there."""
    sudo = tmp_path / "sudo"
    folders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    sudo.write_text(f'#!/bin/sh\nPATH={folders}\nexport PATH\nexec "$@"\n', encoding="utf-8")
    sudo.chmod(0o755)
    bin_folder = Path(sys.executable).parent
    path = f"{tmp_path}:{bin_folder}:{folders}"
    used = 0
    for page in GUIDES:
        for line in re.findall(r"(sudo [^`\n]*allosaur (?:server|run)\b)", page.read_text(encoding="utf-8")):
            command = re.sub(r"allosaur (server|run)$", "allosaur version", line)
            done = subprocess.run(
                ["sh", "-c", command], env={"PATH": path}, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{page.name}: {line}: {done.stderr}"
            used += 1
    assert used > 3
