"""What people write is typed to the leaves: mypy --strict takes the README, and finds a wrong word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
from allosaur import STLProfile, STLStream
from allosaur.server import LocalServer

one = STLStream()
with LocalServer() as server, server.client() as client:
    reveal_type(client)  # STLClient
    reveal_type(client.add_streams(one))  # int
    reveal_type(client.add_streams([one]))  # list[int]
    reveal_type(client.add_streams(STLProfile(one)))  # list[int]
    client.add_streams("imix")  # [arg-type]
    client.start(duraton=3)  # [call-arg]
    stats = client.get_stats()
    reveal_type(stats[0]["opackets"])  # int
    reveal_type(stats["total"]["tx_pps"])  # float
    reveal_type(stats["flow_stats"][7]["tx_pkts"]["total"])  # int
    reveal_type(stats["latency"][7]["latency"]["p99"])  # float
    reveal_type(stats["latency"][7]["err_cntrs"]["dropped"])  # int
    stats[0]["opakets"]  # [typeddict-item]
    stats["totl"]  # [call-overload]
    client.load_profile("http.py")  # [attr-defined]
with LocalServer(stateful=True) as server_of_flows, server_of_flows.client() as flows:
    reveal_type(flows)  # ASTFClient
    flows.load_profile("http.py")
    reveal_type(flows.get_stats()["traffic"]["client"]["tcps_connects"])  # float
    reveal_type(flows.get_flow_rates()["missed"])  # int
    flows.start(multi=3)  # [call-arg]
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """What mypy says of each script, line by line."""
    folder = tmp_path_factory.mktemp("typed")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (readme,) = (block for block in blocks if "LocalServer" in block)
    (folder / "readme.py").write_text(readme, encoding="utf-8")
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", folder / "cache"]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "python")}
    done = subprocess.run(
        [*command, "readme.py", "script.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Found" in done.stdout, f"{done.stdout}{done.stderr}"
    found: dict[str, dict[int, str]] = {"readme.py": {}, "script.py": {}}
    for name, line, words in re.findall(r"^(\S+?):(\d+): (?:error|note): (.*)$", done.stdout, re.MULTILINE):
        found[name].setdefault(int(line), words.replace("builtins.", ""))
    return found


def test_the_listing_of_the_readme_is_typed(told: dict[str, dict[int, str]]) -> None:
    assert told["readme.py"] == {}


def test_types_reach_the_leaves_and_wrong_words_are_found(told: dict[str, dict[int, str]]) -> None:
    expected = {
        number: line.partition("  # ")[2]
        for number, line in enumerate(SCRIPT.splitlines(), 1)
        if "  # " in line
    }
    found = told["script.py"]
    assert set(found) == set(expected), found
    for number, word in expected.items():
        assert word.strip("[]") in found[number], found[number]
