"""Profiles that come with the package: found by name, listed with their tunables, and one to begin with."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli import _main, _shipped

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = Path(_shipped.__file__).parents[1] / "profiles"
"""Those of the package that is tested, installed or not."""
KINDS = ("stateful", "emulation")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_names_are_unique_over_all_kinds() -> None:
    paths = [*SHIPPED.glob("*.py"), *(path for kind in KINDS for path in SHIPPED.glob(f"{kind}/*.py"))]
    assert len({path.stem for path in paths}) == len(paths) == len(_shipped.files())


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("imix", "imix.py"),
        ("imix.py", "imix.py"),
        ("http", "stateful/http.py"),
        ("stateful/http", "stateful/http.py"),
        ("arp_hosts", "emulation/arp_hosts.py"),
    ],
)
def test_a_name_means_a_shipped_profile(
    text: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Path(_shipped.located(text)) == SHIPPED / path


def test_a_file_goes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "imix.py").write_text("# mine", encoding="utf-8")
    assert _shipped.located("imix.py") == "imix.py"
    assert _shipped.located("./imix.py") == "./imix.py"
    assert _shipped.located("other/imix.py") == "other/imix.py", "a path is not looked up by its name"


def test_run_and_sim_find_them_by_name(allosaur: Any, binary: str) -> None:
    ran = allosaur("run", "single_burst", "--local", "-t", "packets=10", "--json")
    assert ran.code == 0, ran
    assert ran.json()["total"]["tx_packets"] == 10
    assert allosaur("run", "http", "--local", "-m", "5", "-d", "1", in_time=True).code == 0
    assert allosaur("sim", "imix", "-o", "out.pcap", "--limit", "3").code == 0
    assert allosaur("sim", "stateful/http").code == 0


def test_an_unknown_name_is_answered_with_the_nearest(allosaur: Any) -> None:
    for command in (["run", "imxi"], ["sim", "imxi", "-o", "x.pcap"], ["profiles", "imxi"]):
        allosaur(*command).refused("imxi", "no such file", "did you mean imix?", "allosaur profiles")
    allosaur("start", "htp").refused("htp", "did you mean http?")


def test_they_are_listed_with_their_tunables(allosaur: Any) -> None:
    listed = allosaur("profiles", "--json").json()["profiles"]
    by_name = {one["name"]: one for one in listed}
    assert by_name.keys() == _shipped.files().keys()
    assert by_name["imix"] == {
        "name": "imix",
        "mode": "stateless",
        "summary": by_name["imix"]["summary"],
        "tunables": [{"name": "clients", "default": 254, "description": "source addresses, 1 to 65535"}],
        "file": str(SHIPPED / "imix.py"),
    }
    assert (by_name["http"]["mode"], by_name["arp_hosts"]["mode"]) == ("stateful", "emulation")
    assert [one["default"] for one in by_name["http"]["tunables"]] == [100, "32 * 1024", 1]
    # Read with argparse, in the profile itself.
    assert [one["name"] for one in by_name["argparse_tunables"]["tunables"]] == ["size", "rate"]
    text = allosaur("profiles")
    assert text.code == 0
    for name in by_name:
        assert re.search(rf"^ +{name}: ", text.out, re.M), name
    assert "-t burst=100 count=10 gap_us=100000 rate_pps=100000" in text.out
    details = allosaur("profiles", "imix").out
    assert "allosaur run imix" in details
    assert str(SHIPPED / "imix.py") in details


@pytest.mark.parametrize(
    ("words", "rate"), [([], ["-m", "5kpps", "--ports", "0,1"]), (["--stateful"], ["-m", "5"])]
)
def test_new_writes_one_that_runs(
    allosaur: Any, binary: str, tmp_path: Path, words: list[str], rate: list[str]
) -> None:
    made = allosaur("new", "mine", *words)
    assert made.code == 0, made
    assert (tmp_path / "mine.py").is_file()
    assert "allosaur run mine.py" in made.out + (tmp_path / "mine.py").read_text(encoding="utf-8")
    ended = allosaur("run", "mine.py", "--local", "-d", "1", *rate, in_time=True)
    assert ended.code == 0, ended
    allosaur("new", "mine.py").refused("mine.py", "is there already", "--force")
    assert allosaur("new", "mine.py", "--force", "--json").json()["file"] == "mine.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_hints_need_no_checkout(page: Path) -> None:
    """What a page says to type works after `pip install`."""
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"allosaur (?:run|sim|start|emu load) profiles/\S+", text) == []
    names = re.findall(
        r"allosaur (?:run|sim|start|profiles|emu load) (?!PROFILE)([a-z_0-9]+)(?= |$|`)", text, re.M
    )
    assert [name for name in names if name not in _shipped.files() and name != "mine"] == []


def test_hints_of_the_program_need_no_checkout() -> None:
    for path in sorted((ROOT / "python" / "allosaur").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"allosaur (?:run|sim|start|emu load) profiles/", text) == [], path


def test_a_tunable_that_is_never_read_is_told(allosaur: Any, binary: str, tmp_path: Path) -> None:
    source = (SHIPPED / "vlan.py").read_text(encoding="utf-8")
    (tmp_path / "loose.py").write_text(
        source.replace("priority=0)", "priority=0, **kwargs)"), encoding="utf-8"
    )
    ended = allosaur("sim", "loose.py", "-o", "out.pcap", "-t", "frist=5")
    assert ended.code == 0, ended
    assert "warning: profile" in ended.err
    assert "never reads the tunable 'frist'" in ended.err
    assert "did you mean first?" in ended.err
    assert _main.main(["sim", "vlan", "-o", str(tmp_path / "x.pcap"), "-t", "frist=5"]) == 2


@pytest.mark.parametrize(("name", "signature"), [("vlan", "priority=0)"), ("stateful/http", "rate=1)")])
def test_a_tunable_that_is_never_read_is_in_the_result(
    allosaur: Any, binary: str, tmp_path: Path, name: str, signature: str
) -> None:
    source = (SHIPPED / f"{name}.py").read_text(encoding="utf-8")
    assert signature in source
    loose = source.replace(signature, f"{signature[:-1]}, **kwargs)")
    (tmp_path / "loose.py").write_text(loose, encoding="utf-8")
    ports = ["--ports", "0,1"] if name == "vlan" else []
    words = ("--local", "-d", "0.2", *ports, "-t", "nobody=5", "--report", "r.html")
    ended = allosaur("run", "loose.py", *words, "--json")
    (told,) = [text for text in ended.json()["warnings"] if "never reads" in text]
    assert "the tunable 'nobody'" in told
    assert ended.err.count("never reads the tunable 'nobody'") == 1
    page = html.unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert page.count(told) == 1


def test_json_goes_to_a_file(allosaur: Any, binary: str, tmp_path: Path) -> None:
    ended = allosaur("run", "single_burst", "--local", "--json", "result.json")
    assert ended.code == 0, ended
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert result["command"] == "run"
    assert ended.out == f"OK: {result['verdict']}. Wrote result.json.\n"
    assert allosaur("version", "--json=v.txt").code == 0
    assert json.loads((tmp_path / "v.txt").read_text(encoding="utf-8"))["command"] == "version"
    assert allosaur("ports", "--json", "ports.json").out == ""
    assert json.loads((tmp_path / "ports.json").read_text(encoding="utf-8"))["devices"] is not None
    allosaur("run", "single_burst", "--local", "--json", "/proc/x.json").refused("--json /proc/x.json")
    failed = allosaur("run", "none.py", "--json", "failed.json")
    failed.refused("none.py")
    assert json.loads((tmp_path / "failed.json").read_text(encoding="utf-8"))["exit_code"] == 2


def test_json_alone_takes_no_word_behind_it(allosaur: Any, binary: str) -> None:
    assert allosaur("run", "--json", "single_burst", "--local").json()["command"] == "run"


def test_quiet_prints_errors_only(allosaur: Any, binary: str) -> None:
    for words in (["-q", "run"], ["run", "--quiet"]):
        ended = allosaur(*words, "single_burst", "--local")
        assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert allosaur("run", "single_burst", "--local", "-q", "--json").json()["ok"] is True
    assert allosaur("-q", "version").out.startswith("allosaur ")
    lost = allosaur("-q", "run", "single_burst", "--local", "--local-ports", "memory:loss=90%:seed=1,memory")
    assert (lost.code, lost.out) == (1, "")
    allosaur("-q", "run", "none.py").refused("none.py")
