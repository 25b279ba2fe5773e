"""Plug-ins of the console, as TRex's console has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from allosaur.cli._modes import STATEFUL
from allosaur.cli.console import _loop
from allosaur.cli.console._completion import completions
from allosaur.cli.console._session import Session, Settings, Target, opened
from allosaur.server import LocalServer

COUNTER = '''
from trex.console.plugins import *

class Counter(ConsolePlugin):
    def __init__(self):
        self.count = 0

    def plugin_description(self):
        return "counts"

    def plugin_load(self):
        print("counter is loaded")
        self.add_argument("session", type=str, help="a name that the console uses, too")
        self.add_argument("-n", type=int, dest="command", default=1, help="by how much")
        self.add_argument("--twice", action="store_true", dest="twice")
        self.add_argument("-k", dest="kind", choices=("up", "down"), default="up")
        self.add_argument("--mac", type=check_mac_addr, dest="mac")
        self.add_argument("-p", nargs="+", type=int, dest="ports", default=[])

    def plugin_unload(self):
        print("counter is unloaded at", self.count)

    def do_count(self, session, command, twice, kind, mac):
        """Count."""
        self.count += command * (2 if twice else 1) * (1 if kind == "up" else -1)
        self.trex_client.logger.info("%s: %s %s" % (bold(session), self.count, mac))

    def do_ports(self, ports):
        """Say how many ports there are.

        And which were asked for.
        """
        print(len(self.trex_client.get_all_ports()), ports)

    def do_break(self):
        """Break down."""
        return {}["nothing"]

    def do_refused(self):
        """Ask the client for what it refuses."""
        self.trex_client.start(ports=[77])
'''
BAD = {
    "none": ("x = 1\n", "one class that inherits ConsolePlugin, not 0"),
    "two": (COUNTER + "class Other(ConsolePlugin): pass\n", "not 2"),
    "words": ("this is no Python\n", "line 1"),
    "raises": ("raise ValueError('no luck')\n", "no luck"),
    "silent": (
        "from trex.console.plugins import *\nclass P(ConsolePlugin):\n    pass\n",
        "no plugin_description()",
    ),
    "undocumented": (
        COUNTER.replace('        """Break down."""\n', ""),
        "do_break() has no docstring",
    ),
    "undeclared": (COUNTER.replace("def do_break(self)", "def do_break(self, what)"), "takes 'what'"),
    "twofold": (COUNTER.replace('dest="twice"', 'dest="command"'), "'command' is declared twice"),
    "show": (COUNTER, "words of `plugins`"),
}


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalServer]:
    with LocalServer(ports=["memory", "memory"], cores=1) as running:
        yield running


@pytest.fixture
def session(shared: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A console in a folder with plug-ins."""
    (tmp_path / "plugin_counter.py").write_text(COUNTER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with opened(Target(shared.host, shared.rpc_port, shared.pub_port), Settings()) as session:
        yield session


def said(session: Session, line: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    """What a line prints."""
    assert _loop.line(line, session) == code, capsys.readouterr()
    out, err = capsys.readouterr()
    assert "defect" not in err
    return out if code == 0 else err


def test_a_plugin_has_commands(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert "counter  no" in said(session, "plugins show", capsys)
    shown = said(session, "plugins load counter", capsys)
    assert "counter is loaded" in shown and "[SUCCESS]" in shown
    assert "counter  yes     counts" in said(session, "plugins", capsys)
    assert "a\x1b[22m: 1 None" in said(session, "plugins counter count a", capsys)
    assert ": 7 None" in said(session, "plugins counter count a -n 3 --twice", capsys)
    assert ": 6 00:11:22:33:44:55" in said(
        session, "plugins counter count b -k down --mac 00:11:22:33:44:55", capsys
    )
    assert said(session, "plugins counter ports -p 3 4", capsys) == "2 [3, 4]\n"
    # It is the same after a change of mode, with the new client.
    said(session, "mode stateful", capsys)
    assert session.mode == STATEFUL
    assert said(session, "plugins counter ports", capsys) == "2 []\n"
    shown = said(session, "plugins load counter", capsys)
    assert "counter is unloaded at 6" in shown and "counter is loaded" in shown
    assert "counter is unloaded at 0" in said(session, "plugins unload", capsys)
    assert "counter" in said(session, "plugins counter ports", capsys, code=2)


def test_it_explains_itself_and_its_words_are_completed(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    said(session, "plugins load ./plugin_counter.py", capsys)
    shown = said(session, "plugins counter -h", capsys)
    for words in ("counts", "count", "Say how many ports there are."):
        assert words in shown
    shown = said(session, "plugins counter count -h", capsys)
    for words in ("session", "a name that the console uses", "-n COMMAND", "{up,down}"):
        assert words in shown
    assert set(completions(session, "plugins ")) == {"show", "load", "unload", "counter"}
    assert completions(session, "plugins load cou") == ["counter"]
    assert set(completions(session, "plugins counter ")) == {"count", "ports", "break", "refused"}
    assert completions(session, "plugins counter count -k u") == ["up"]


def test_plugins_of_the_user_are_found(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path("config/allosaur/plugins")
    folder.mkdir(parents=True)
    (folder / "plugin_mine.py").write_text(COUNTER)
    (folder / "plugin_counter.py").write_text("the one of the current folder goes before\n")
    assert "mine     no" in said(session, "plugins show", capsys)
    said(session, "plugins load mine", capsys)
    said(session, "plugins load counter", capsys)


def test_what_breaks_in_a_plugin_is_told_and_the_console_goes_on(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    said(session, "plugins load counter", capsys)
    line = COUNTER.splitlines().index('        return {}["nothing"]') + 1
    told = said(session, "plugins counter break", capsys, code=2)
    assert f"plugin_counter.py, line {line}: break: KeyError: 'nothing'" in told
    assert "77" in said(session, "plugins counter refused", capsys, code=2)
    assert "--mac" in said(session, "plugins counter count a --mac 12", capsys, code=2)
    assert "COMMAND" in said(session, "plugins counter", capsys, code=2)
    assert "there is no plugin_other.py" in said(session, "plugins load other", capsys, code=2)
    assert "no such file" in said(session, "plugins load ./other.py", capsys, code=2)
    assert "'other' is not loaded; loaded: counter" in said(session, "plugins unload other", capsys, code=2)


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_plugin_is_refused(
    name: str, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    text, why = BAD[name]
    Path(f"plugin_{name}.py").write_text(text)
    told = said(session, f"plugins load ./plugin_{name}.py", capsys, code=2)
    assert why in told
    assert f"plugin_{name}.py" in told
    assert session.plugins == {}


def test_what_a_plugin_prints_is_not_among_objects_of_json(
    shared: LocalServer, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(json=True, readonly=True)
    with opened(Target(shared.host, shared.rpc_port, shared.pub_port), settings) as quiet:
        for line in ("plugins load counter", "plugins counter ports", "plugins"):
            assert _loop.line(line, quiet) == 0
    out, err = capsys.readouterr()
    objects = [json.loads(one) for one in out.splitlines() if one.startswith("{")]
    assert [one["ok"] for one in objects] == [True] * 3
    assert objects[0]["actions"] == ["break", "count", "ports", "refused"]
    assert objects[1] == {"command": "plugins", "ok": True, "plugin": "counter", "action": "ports"}
    assert objects[2]["plugins"] == {"counter": True}
    assert "2 []" in err


def test_the_end_of_a_console_unloads_them(
    shared: LocalServer, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("plugin_stuck.py").write_text(COUNTER.replace('at", self.count', '", missing'))
    with opened(Target(shared.host, shared.rpc_port, shared.pub_port), Settings(readonly=True)) as other:
        for name in ("stuck", "counter"):
            assert _loop.line(f"plugins load {name}", other) == 0
    out, err = capsys.readouterr()
    assert "counter is unloaded at 0" in out
    assert "warning: " in err and "missing" in err
