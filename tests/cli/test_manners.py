"""How the command line behaves at its edges: its first moments, outputs that take nothing, wrong words."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from allosaur import CapturedPacket
from allosaur.cli import _format
from allosaur.cli.commands._capture import _Recording
from allosaur.cli.console._monitor import Show

from .conftest import ROOT, Allosaur, environment

SCRIPTS = sorted((ROOT / "scripts" / "wheel-data" / "scripts").iterdir())
EARLY = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Interrupting())
"""


def in_a_process(
    *words: str, folder: Path, variables: dict[str, str] | None = None, **streams: object
) -> subprocess.CompletedProcess[bytes]:
    """Run Python with these words, as a process that is not forked."""
    kinds: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**environment(), **(variables or {})},
        timeout=60,
        **kinds,  # type: ignore[call-overload]
    )
    return done


@pytest.mark.parametrize("module", ["allosaur.cli._command", "argparse", "allosaur.cli.commands._run"])
@pytest.mark.parametrize("start", ["script", "allosaur", "allosaur.cli"])
def test_ctrl_c_while_modules_are_imported_is_no_traceback(tmp_path: Path, start: str, module: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(EARLY.format(module=module))
    path = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    words = [str(SCRIPTS[0])] if start == "script" else ["-m", start]
    done = in_a_process(*words, "version", folder=tmp_path, variables={"PYTHONPATH": path})
    assert done.returncode in (-2, 130), done
    assert done.stderr == b""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_ctrl_c_at_the_start_of_every_script_is_no_traceback(tmp_path: Path, script: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(EARLY.format(module="allosaur.cli._errors"))
    path = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    done = in_a_process(str(script), "--help", folder=tmp_path, variables={"PYTHONPATH": path})
    assert done.returncode in (-2, 130), done
    assert done.stderr == b""


def test_the_package_runs_as_a_module(tmp_path: Path) -> None:
    whole = in_a_process("-m", "allosaur", "profiles", folder=tmp_path)
    part = in_a_process("-m", "allosaur.cli", "profiles", folder=tmp_path)
    assert whole.returncode == 0
    assert whole.stdout == part.stdout != b""


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["version"], ["--help"], ["profiles", "--json"], ["help", "run"]])
def test_an_output_that_is_full_is_told_as_one(tmp_path: Path, words: list[str], unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = in_a_process(
            "-m", "allosaur", *words, folder=tmp_path, stdout=full, variables={"PYTHONUNBUFFERED": unbuffered}
        )
    said = done.stderr.decode()
    # argparse says nothing when it cannot print its help at once.
    assert (done.returncode, said) == (0, "") or (done.returncode == 3 and "No space left on device" in said)
    assert "defect" not in said
    assert "Exception ignored" not in said
    assert words[0] in ("--help", "help") or done.returncode == 3


def test_a_full_output_does_not_hide_an_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = in_a_process("-m", "allosaur", "run", "nix", "--json", folder=tmp_path, stdout=full)
    assert done.returncode == 2
    assert b"no such file" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_closed_outputs_are_no_defect(tmp_path: Path) -> None:
    line = f"{sys.executable} -m allosaur version >&- 2>&-"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment(), timeout=60)
    assert done.returncode == 0


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252", "koi8-r"])
def test_a_result_is_printed_with_what_the_encoding_has(tmp_path: Path, encoding: str) -> None:
    done = in_a_process(
        *("-m", "allosaur", "run", "imix", "--local", "-m", "1kpps", "-d", "0.3"),
        folder=tmp_path,
        variables={"PYTHONIOENCODING": encoding},
    )
    said = done.stdout.decode(encoding)
    assert "UnicodeEncodeError" not in done.stderr.decode(encoding)
    # A busy machine may not send all in time; the result is there all the same.
    assert done.returncode in (0, 1)
    assert "received packets" in said
    assert said.splitlines()[-1].startswith(("OK:", "FAILED:"))


def test_a_negative_duration_is_refused(allosaur: Allosaur) -> None:
    for command in (["run", "imix", "--local"], ["sim", "stateful/http"], ["capture"]):
        allosaur(*command, "-d", "-1").refused("'-1' is not a duration", "forever")


@pytest.mark.parametrize(
    ("profile", "tunable", "near"),
    [
        ("imix", "cleints=5", "clients"),
        ("stateful/http", "reqest=5", "request"),
        ("capture.pcap", "speedupp=5", "speedup"),
    ],
)
def test_a_wrong_tunable_is_no_fault_of_the_profile(
    allosaur: Allosaur, tmp_path: Path, profile: str, tunable: str, near: str
) -> None:
    capture = next((ROOT / "python" / "allosaur" / "captures").glob("dns.pcap"))
    (tmp_path / "capture.pcap").write_bytes(capture.read_bytes())
    ended = allosaur("run", profile, "--local", "-t", tunable)
    ended.refused("tunable")
    assert "correct the profile" not in ended.err
    assert f"did you mean {near}?" in ended.err


def test_a_tunable_without_value_is_no_fault_of_the_profile(allosaur: Allosaur) -> None:
    ended = allosaur("run", "argparse_tunables", "--local", "-t", "sizes=5")
    assert ended.code == 2
    assert "correct the profile" not in ended.err


def test_a_wrong_profile_is_still_to_be_corrected(allosaur: Allosaur, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("def register():\n    return 1 / 0\n")
    allosaur("run", "wrong.py", "--local").refused("line 2", "correct the profile")


def test_a_profile_without_its_ending_is_hinted_at(allosaur: Allosaur) -> None:
    assert allosaur("new", "mine").code == 0
    allosaur("run", "mine", "--local").refused("no such file", "did you mean mine.py?")
    allosaur("run", "mien.py", "--local").refused("did you mean mine.py?")
    allosaur("run", "./mine", "--local").refused("did you mean mine.py?")


@pytest.mark.parametrize(
    "command",
    [["run"], ["sim"], ["start"], ["plan", "--target", "1gbps"], ["push"], ["profiles"], ["emu", "load"]],
)
def test_what_is_no_file_is_told(allosaur: Allosaur, tmp_path: Path, command: list[str]) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    allosaur(*command, "pipe.py").refused("pipe.py: is a pipe")
    allosaur(*command, "folder.py").refused("folder.py: is a folder")
    allosaur(*command, "/dev/null").refused("/dev/null: is a device")
    allosaur(*command, "nix.py").refused("nix.py: no such file")


def test_a_batch_of_the_console_may_be_a_pipe(tmp_path: Path) -> None:
    line = f"{sys.executable} -m allosaur console --batch <(echo help)"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, env=environment(), timeout=60, capture_output=True, text=True
    )
    assert "no such file" not in done.stderr
    assert "is a pipe" not in done.stderr


def packet(index: int, ts: float) -> CapturedPacket:
    return {"binary": bytes(60), "ts": ts, "port": 0, "index": index, "wirelen": 60, "origin": "RX"}


#: The first came before the answer that says when the recording began.
EARLY_PACKETS = [packet(1, 9.5), packet(2, 9.25), packet(3, 10.5)]


def test_no_packet_of_a_capture_comes_before_its_begin(capsys: pytest.CaptureFixture[str]) -> None:
    recording = _Recording(argparse.Namespace(json=False, limit=None), None, start_s=10.0)
    recording.take(EARLY_PACKETS)
    recording.take([packet(4, 11.25)])
    times = [float(line.split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert times == [0.25, 0.0, 1.25, 2.0]


def test_no_packet_of_a_monitor_comes_before_its_begin(capsys: pytest.CaptureFixture[str]) -> None:
    show = Show()
    show.packets(EARLY_PACKETS, 10.0)
    show.packets([packet(4, 11.25)], 10.0)
    times = [float(line.split()[4]) for line in capsys.readouterr().out.splitlines()]
    assert times == [0.25, 0.0, 1.25, 2.0]


def test_numbers_beside_their_limit() -> None:
    assert _format.beside(0.99980004, 1.0) == "0.9998"
    assert _format.beside(1.00004, 1.0) == "1.00004"
    assert _format.beside(0.9999999, 1.0) == "0.9999999"
    assert _format.beside(1.0, 1.0) == "1"
    assert _format.beside(123456.0, 1.0) == "123500"


def test_junit_shows_a_share_as_people_read_it(tmp_path: Path) -> None:
    from allosaur.run import _junit

    threshold = {
        "threshold": "lost>0.5%",
        "metric": "lost",
        "operator": ">",
        "limit": 0.5,
        "value": 0.99980004,
        "unit": "%",
        "where": None,
        "ok": False,
    }
    document = {
        "profile": "imix.py",
        "duration_s": 1.0,
        "built_in": {"ok": True, "verdict": ""},
        "cut_short": None,
        "interrupted": False,
        "thresholds": [threshold],
        "tool": {"version": "1"},
        "started": "2026-11-22T16:00:00.000Z",
        "host": "here",
    }
    _junit.write_result(tmp_path / "junit.xml", document)
    failure = ElementTree.parse(tmp_path / "junit.xml").find(".//failure")
    assert failure is not None
    assert failure.text == "lost is 0.9998 %, and may not be > 0.5 %"
