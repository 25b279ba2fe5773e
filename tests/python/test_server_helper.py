"""Starting a server: found, started, its log shown on failure, ended with its parent."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from allosaur import STLConnectionError, STLError
from allosaur.server import LocalServer, find_binary

#: A program that behaves as the server's command line promises, without being one.
STAND_IN = """#!{python}
import os, signal, sys
print("a line of the log", sys.argv[1:], file=sys.stderr, flush=True)
{body}
"""
LINE = "ready rpc=tcp://127.0.0.1:1234 pub=tcp://127.0.0.1:5678 ports=2 cores=1"
READY = f"print({LINE!r}, flush=True); signal.pause()"


def stand_in(folder: Path, body: str) -> Path:
    path = folder / "allosaur-server"
    path.write_text(STAND_IN.format(python=sys.executable, body=body))
    path.chmod(0o755)
    return path


def test_the_ready_line_says_where_it_listens(tmp_path: Path) -> None:
    with LocalServer(["memory", "memory:rate=1gbps"], cores=2, binary=stand_in(tmp_path, READY)) as server:
        assert (server.host, server.rpc_port, server.pub_port) == ("127.0.0.1", 1234, 5678)
        assert server.is_running()
        assert "'--ports', 'memory,memory:rate=1gbps', '--cores', '2', '--rpc-port', '0'" in server.stderr
    assert not server.is_running()
    assert server.pid is None
    assert "a line of the log" in server.stderr, "the log can be read afterwards"
    server.stop()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "sys.exit('no such port kind: memry')",
            r"ended with exit code 1\. Its log: (.|\n)*no such port kind",
        ),
        (
            "print('error: port x: no such kind', file=sys.stderr, flush=True); sys.exit(2)",
            r"^the server did not start: port x: no such kind$",
        ),
        ("print('hello', flush=True); signal.pause()", r"said 'hello' instead of 'ready"),
    ],
)
def test_a_server_that_does_not_start_shows_its_log(tmp_path: Path, body: str, words: str) -> None:
    server = LocalServer(binary=stand_in(tmp_path, body))
    with pytest.raises(STLConnectionError, match=words):
        server.start()
    assert not server.is_running()


def test_a_server_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allosaur.server._READY_TIMEOUT_S", 0.2)
    with pytest.raises(STLConnectionError, match="the server did not start"):
        LocalServer(binary=stand_in(tmp_path, "signal.pause()")).start()


def test_a_server_that_ignores_the_polite_signal_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allosaur.server._STOP_TIMEOUT_S", 0.2)
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN); " + READY.replace("signal.pause()", "")
    with LocalServer(binary=stand_in(tmp_path, stubborn + "\nwhile True: signal.pause()")) as server:
        assert server.is_running()
    assert not server.is_running()


def test_the_server_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    binary = stand_in(tmp_path, READY)
    code = f"""
from allosaur.server import LocalServer
server = LocalServer(binary={str(binary)!r})
server.start()
print(server.pid, flush=True)
signal.pause()
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = os.pidfd_open(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    ended, _, _ = select.select([child], [], [], 20)
    os.close(child)
    assert ended, "the server outlived its parent"


def test_the_binary_is_found_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = stand_in(tmp_path, READY)
    monkeypatch.setenv("ALLOSAUR_SERVER", str(binary))
    assert find_binary() == binary
    monkeypatch.setenv("ALLOSAUR_SERVER", str(tmp_path / "gone"))
    with pytest.raises(STLError, match=r"\$ALLOSAUR_SERVER is '.*gone', which is not a program"):
        find_binary()


def test_the_binary_is_found_on_path_or_its_absence_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = stand_in(tmp_path, READY)
    monkeypatch.delenv("ALLOSAUR_SERVER", raising=False)
    monkeypatch.setattr("allosaur.server.sys.executable", "/nowhere/python")
    monkeypatch.setattr("allosaur.server.__file__", "/nowhere/allosaur/server.py")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_binary() == binary
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(STLError, match=r"install the package, build it with 'cargo build --release"):
        find_binary()
