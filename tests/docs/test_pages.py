"""Pages whose commands run as they stand, from the first to the last: quick start, how-to pages, others.

A block of `bash` is run; one of only `allosaur server ...` is another terminal, in which the server stays
until the next one. A block of `sh` needs what a test machine has not: its commands are only read. A comment
`<!-- before: ... -->` prepares what a page takes for granted.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli import _parser
from allosaur.cli._errors import CommandError
from allosaur.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
HOW_TO = sorted((DOCS / "how-to").glob("*.md"))
GUIDES = ("quick-start", "thresholds", "coming-from-others", "access")
PAGES = [
    *(DOCS / "guide" / f"{name}.md" for name in GUIDES),
    DOCS / "guide" / "emulation" / "index.md",
    *HOW_TO,
]
ALL_PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(
    r"^(?:```(?P<kind>bash|sh)\n(?P<text>.*?)^```$|<!-- before: (?P<before>.*?) -->$)", re.M | re.S
)
SHOWN = re.compile(r"(?:\w*\$ )?(?:sudo )?(?:env \"PATH=\$PATH\" )?allosaur ([a-z-].*)$")
SERVER = re.compile(r"^(?:sudo )?(?:ip netns exec \w+ )?(?:env \"PATH=\$PATH\" )?allosaur server .*$")
TRIES = 3
NEEDS = {"nginx": "nginx", "nft": "nft", "conntrack": "conntrack"}
#: What a page's names mean is for this test only: networks of its own, and commands that are as on a page.
SHELL = r"""
set -e
mount -t tmpfs tmpfs /run/netns
mount -t sysfs sysfs /sys
mkdir bin
cat > bin/allosaur <<SHIM
#!/bin/sh
exec "$PYTHON" -m allosaur.cli "\$@"
SHIM
cat > bin/sudo <<'SHIM'
#!/bin/sh
exec "$@"
SHIM
chmod +x bin/*
export PATH="$PWD/bin:$PATH"
ip link set lo up
server=
serve() {
    rest
    "$@" > server.log 2>&1 &
    server=$!
    for _ in $(seq 300); do
        if grep -q ready server.log; then return; fi
        kill -0 $server || break
        sleep 0.1
    done
    cat server.log >&2
    return 1
}
rest() { if [ -n "$server" ]; then kill $server; wait $server || true; server=; fi; }
trap rest EXIT
"""


def script(text: str) -> str:
    """The commands of a page, as one script that says each block before it runs it."""
    parts = [SHELL]
    for number, found in enumerate(BLOCK.finditer(text)):
        if found["before"]:
            parts.append(found["before"])
        elif found["kind"] == "bash":
            block = found["text"]
            is_server = SERVER.fullmatch(block.strip())
            parts += [f"echo '--- block {number}'", f"serve {block}" if is_server else block]
    # Twice as long is no better test.
    return "\n".join(parts).replace("-d 2 ", "-d 1 ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path, networks_work: None, binary: str) -> None:
    text = page.read_text(encoding="utf-8")
    for word, program in NEEDS.items():
        if (
            re.search(rf"\b{word} ", text)
            and subprocess.run(["which", program], capture_output=True).returncode
        ):
            pytest.skip(f"{page.name} needs {program}")
    written = script(text)
    assert "allosaur" in written.removeprefix(SHELL), "a page without a command has no place here"
    environment = {
        **os.environ,
        "PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "ALLOSAUR_SERVER": binary,
        "NO_COLOR": "1",
    }
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "bash", "-c", written]
    for attempt in range(1, TRIES + 1):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=110, check=False, env=environment, cwd=folder
        )
        # A thread of a busy machine stands still for a tenth of a second: what was due is missed, and said.
        if done.returncode == 0 or "load not reached" not in done.stdout:
            break
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def commands(text: str) -> list[str]:
    """The commands of blocks that are not run."""
    blocks = [found["text"] for found in BLOCK.finditer(text) if found["kind"] == "sh"]
    lines = [line for block in blocks for line in block.splitlines()]
    found = [
        re.search(r"\ballosaur ((?:server|run|ports|status|config|plan|doctor)\b.*)$", line) for line in lines
    ]
    return [one[1] for one in found if one]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_not_run_is_at_least_a_command(page: Path) -> None:
    for line in commands(page.read_text(encoding="utf-8")):
        _parser.build(COMMANDS).parse_args(shlex.split(line))


def shown(page: Path) -> list[str]:
    """All lines of a page's blocks that are commands of ours, without prompts and comments."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    lines = [
        line
        for kind, block in blocks
        if kind in ("", "bash", "sh", "console", "text")
        for line in block.replace("\\\n", " ").splitlines()
    ]
    found = [SHOWN.match(line) for line in lines]
    commands = [re.split(r" +(?:#|\|\|?|&&?|2?>) ", f"{one[1]} ")[0] for one in found if one]
    # How a command is written in general.
    return [one for one in commands if not re.search(r"[\[\]]|\.\.\.|\w\|\w", one)]


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_shows_has_words_that_there_are(page: Path) -> None:
    for line in shown(page):
        try:
            _parser.build(COMMANDS).parse_args(shlex.split(line))
        except SystemExit as end:
            assert end.code == 0, line
        except CommandError as error:
            raise AssertionError(f"{page.name}: allosaur {line}: {error}") from error


def test_blocks_are_told_apart() -> None:
    page = (
        "<!-- before: one -->\n```bash\nallosaur server --ports a,b\n```\n```sh\nno\n```\n```bash\nls\n```\n"
    )
    written = script(page).removeprefix(SHELL)
    said = [line for line in written.splitlines() if line]
    assert said == [
        "one",
        "echo '--- block 1'",
        "serve allosaur server --ports a,b",
        "echo '--- block 3'",
        "ls",
    ]
    assert commands("```sh\nsudo allosaur ports prepare x\n```\n") == ["ports prepare x"]
    assert SERVER.fullmatch('sudo ip netns exec one env "PATH=$PATH" allosaur server --ports near')


@pytest.fixture(scope="session")
def binary() -> Any:
    """The server binary."""
    from allosaur.server import find_binary

    return str(find_binary())
