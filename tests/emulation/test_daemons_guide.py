"""Guides about real daemons: their commands run them, and their scripts emulate clients in front of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDES = ROOT / "docs" / "guide" / "emulation"
# The headings of the examples, the daemon and what it brings, and the words that must come out.
EXAMPLES = {
    "Leases of dnsmasq": (
        ["dnsmasq"],
        [
            "1000 clients have addresses and know their gateway",
            "host-7.lan has the address of client 7: True",
            "1,000  pkts  ack from the server",
            "1000",
        ],
    ),
    "Logging in at hostapd": (
        ["hostapd", "hostapd_cli"],
        [
            "100 EAP_DONE_FAIL EAP_TYPE_MSCHAPV2",
            "500 EAP_DONE_OK EAP_TYPE_MD5",
            "400 EAP_DONE_OK EAP_TYPE_MSCHAPV2",
            "900",
        ],
    ),
    "Addresses by a router": (
        ["radvd"],
        ["1000 clients have addresses", "the router answered three pings", "lladdr 02:00:00:01:00:01"],
    ),
    "Groups at a bridge": ([], ["1000 groups are joined", "1000"]),
    "Neighbors of lldpd": (["lldpd", "lldpcli"], ["500"]),
}
# All of it in namespaces of its own, which end with the shell: the guide's names are for everybody.
SHELL = """
set -e
mount -t tmpfs tmpfs /run
mkdir /run/netns /run/lldpd
ip link set lo up
PATH="$BIN:$PATH:/usr/sbin:/sbin"
cd "$FOLDER"
serve() {
    allosaur server "$@" > server.log 2>&1 &
    server=$!
    for _ in $(seq 100); do grep -q . server.log && break; sleep 0.1; done
}
"""


def sections(guide: str) -> dict[str, str]:
    """The parts of a guide by their headings."""
    text = (GUIDES / guide).read_text(encoding="utf-8")
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_guide_works(
    networks_work: None, daemons: ModuleType, tmp_path: Path, example: str
) -> None:
    tools, expected = EXAMPLES[example]
    for tool in tools:
        daemons.path(tool)
    found = sections("daemons.md")
    shared = found.pop(next(iter(found)))
    (text,) = [text for heading, text in found.items() if heading.startswith(example)]
    (tmp_path / "hosts.py").write_text(blocks(shared, "python")[0], encoding="utf-8")
    for name, script in zip(re.findall(r"`(\w+\.py)`", text), blocks(text, "python"), strict=True):
        (tmp_path / name).write_text(script, encoding="utf-8")
    serve = "serve --ports af_packet:tg0 --emu"
    assert_prints([*blocks(shared, "bash"), serve, *blocks(text, "bash")], tmp_path, expected)


def test_the_guide_about_flows_works(
    networks_work: None, devices: ModuleType, daemons: ModuleType, tmp_path: Path
) -> None:
    del devices  # They skip where there is no NAT.
    daemons.path("dnsmasq")
    (text,) = [text for heading, text in sections("flows.md").items() if "step by step" in heading]
    (tmp_path / "ports.yaml").write_text(blocks(text, "yaml")[0], encoding="utf-8")
    (tmp_path / "leased.py").write_text(blocks(text, "python")[0], encoding="utf-8")
    network, *rest = blocks(text, "bash")
    words = ["OK: all flows that were offered began and completed", "200"]
    lines = assert_prints([network, "serve --config ports.yaml", *rest], tmp_path, words)
    assert lines.count("200") == 2, "leases, and sources in the NAT's table"


def assert_prints(commands: list[str], folder: Path, expected: list[str]) -> list[str]:
    """Run commands of a guide in a shell, with a server; gives the lines that they print."""
    script = SHELL + "\n".join([*commands, "kill $server", "wait $server || true"]).replace("sudo ", "")
    environment = {
        **os.environ,
        "FOLDER": str(folder),
        "BIN": str(Path(sys.executable).parent),
    }
    command = ["unshare", "--net", "--mount", "--pid", "--kill-child", "--fork", "--mount-proc"]
    done = subprocess.run(
        [*command, "bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    lines = done.stdout.splitlines()
    for words in expected:
        whole = words.isdigit()
        assert any(words == line if whole else words in line for line in lines), f"{words}: {done.stdout}"
    return lines
