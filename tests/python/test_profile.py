"""Profiles from files, and the errors of bad ones: the file, the line, the remedy."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import yaml
from allosaur import STLProfile, STLProfileError
from allosaur.streams._tunable_names import UnreadTunableWarning

STREAM = """
from allosaur import STLStream, STLPktBuilder, STLTXCont
class Profile:
    def get_streams(self{parameters}):
        {before}
        return {result}
def register():
    return Profile()
"""
ONE = "[STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=STLTXCont(pps=1))]"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def profile(path: Path, parameters: str = ", **kwargs", before: str = "pass", result: str = ONE) -> Path:
    return write(path / "profile.py", STREAM.format(parameters=parameters, before=before, result=result))


def test_direction_port_and_tunables_reach_the_profile(tmp_path: Path) -> None:
    before = "assert (direction, port_id, kwargs) == (1, 3, {'size': 64}), (direction, port_id, kwargs)"
    path = profile(tmp_path, ", direction, port_id, **kwargs", before)
    assert len(STLProfile.load(path, direction=1, port_id=3, size=64).get_streams()) == 1


@pytest.mark.parametrize(
    "tunables", [{"size": 64}, {"tunables": ["--size", "64"]}, {"tunables": ["size=64"]}]
)
def test_tunables_of_either_kind_reach_an_old_profile(tmp_path: Path, tunables: dict[str, object]) -> None:
    path = profile(tmp_path, ", direction=0, size=1", "assert size == 64, repr(size)")
    STLProfile.load(path, **tunables)


@pytest.mark.parametrize("tunables", [{"size": 64}, {"tunables": ["--size", "64"]}])
def test_tunables_of_either_kind_reach_a_new_profile(tmp_path: Path, tunables: dict[str, object]) -> None:
    before = "import argparse; p = argparse.ArgumentParser(); p.add_argument('--size', type=int); "
    before += "assert p.parse_args(tunables).size == 64; assert kwargs == {'direction': 0, 'port_id': 0}"
    STLProfile.load(profile(tmp_path, ", tunables, **kwargs", before), **tunables)


def test_an_unknown_tunable_is_named_with_the_known_ones(tmp_path: Path) -> None:
    path = profile(tmp_path, ", direction=0, size=1, rate=1")
    with pytest.raises(STLProfileError, match="has no tunable 'sice', its tunables are: size, rate"):
        STLProfile.load(path, sice=64)


def test_the_nearest_tunable_is_named(tmp_path: Path) -> None:
    path = profile(tmp_path, ", direction=0, size=1, rate=1")
    with pytest.raises(STLProfileError, match=r"are: size, rate; did you mean size\?$"):
        STLProfile.load(path, sice=64)


@pytest.mark.parametrize(
    ("signature", "body", "warned"),
    [
        (", direction=0, size=1, **kwargs", "pass", True),
        (
            ", **kwargs",
            "size = kwargs.get('size', 64); rate = kwargs['rate'] if 'rate' in kwargs else 1",
            True,
        ),
        (", **kwargs", "size = kwargs.get('sice', 64)", False),
        (", **kwargs", "dict(kwargs)", False),
        (", **kwargs", "[name for name in kwargs]", False),
        (", **kwargs", "words = kwargs.get('tunables', [])", False),
    ],
    ids=["ignored", "others are read", "this is read", "passed on", "listed", "all through the list"],
)
def test_a_tunable_that_is_never_read_is_warned_of(
    tmp_path: Path, signature: str, body: str, warned: bool
) -> None:
    path = profile(tmp_path, signature, body)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        STLProfile.load(path, sice=64)
    told = [str(one.message) for one in caught if one.category is UnreadTunableWarning]
    assert bool(told) == warned, told
    if warned:
        assert "never reads the tunable 'sice'" in told[0]
        assert "did you mean size?" in told[0]


def test_a_tunable_without_a_value_is_named(tmp_path: Path) -> None:
    with pytest.raises(STLProfileError, match="tunable '--size' has no value, write size=VALUE"):
        STLProfile.load(profile(tmp_path), tunables=["--size"])


def test_a_new_profile_that_refuses_its_tunables_is_reported(tmp_path: Path) -> None:
    before = "import argparse; argparse.ArgumentParser().parse_args(tunables)"
    with pytest.raises(STLProfileError, match="it ended itself; are its tunables right"):
        STLProfile.load(profile(tmp_path, ", tunables, **kwargs", before), tunables=["--what", "1"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\nclass P(:\n", r"profile\.py, line 2: invalid syntax: class P\(:"),
        ("def f():\nreturn 1\n", r"profile\.py, line 2: .*indented block"),
        ("x = 1\n", r"profile\.py has no register\(\) function: define register\(\)"),
        ("def register():\n    return 5\n", r"what register\(\) returns has no get_streams\(\)"),
        ("x = 1\nimport no_such_module\n", r"line 2: import no_such_module: ModuleNotFoundError"),
        ("def register():\n    return 1 / 0\n", r"line 2: return 1 / 0: ZeroDivisionError: division by zero"),
        ("x = '\0'", r"profile\.py.*null bytes"),
    ],
)
def test_a_bad_profile_says_file_line_and_reason(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(STLProfileError, match=words):
        STLProfile.load(write(tmp_path / "profile.py", text))


def test_an_error_of_the_language_says_the_line_of_the_profile(tmp_path: Path) -> None:
    path = profile(tmp_path, result="[STLStream(name='S1')]")
    with pytest.raises(STLProfileError, match=r"profile\.py, line 6: .*: stream 'S1' has no packet"):
        STLProfile.load(path)


@pytest.mark.parametrize("result", ["None", "[1]", "5", "'streams'"])
def test_what_is_no_list_of_streams_is_refused(tmp_path: Path, result: str) -> None:
    with pytest.raises(STLProfileError, match=r"it must return a list of STLStream"):
        STLProfile.load(profile(tmp_path, result=result))


@pytest.mark.parametrize(
    "result", [ONE, ONE[1:-1], f"tuple({ONE})", f"__import__('allosaur').STLProfile({ONE})"]
)
def test_streams_may_come_as_list_one_tuple_or_profile(tmp_path: Path, result: str) -> None:
    assert len(STLProfile.load(profile(tmp_path, result=result)).get_streams()) == 1


def test_a_missing_file_and_an_unknown_kind_are_named(tmp_path: Path) -> None:
    with pytest.raises(STLProfileError, match=r"gone\.py cannot be read: No such file"):
        STLProfile.load(tmp_path / "gone.py")
    with pytest.raises(STLProfileError, match=r"files ending in '\.txt' are not known"):
        STLProfile.load(tmp_path / "profile.txt")
    (tmp_path / "latin.py").write_bytes(b"x = '\xe9'\n")
    with pytest.raises(STLProfileError, match="is not UTF-8 text"):
        STLProfile.load(tmp_path / "latin.py")


def test_a_profile_finds_the_files_next_to_it(tmp_path: Path) -> None:
    write(tmp_path / "helper_next_to_profile.py", "size = 60\n")
    (tmp_path / "one.bin").write_bytes(bytes(60))
    path = profile(tmp_path, before="import helper_next_to_profile as helper; assert helper.size == 60")
    paths_before = list(sys.path)
    STLProfile.load(path)
    assert sys.path == paths_before
    sys.modules.pop("helper_next_to_profile")


def test_captures_may_lie_next_to_the_profile(tmp_path: Path) -> None:
    from allosaur.api import IP, Ether, wrpcap

    wrpcap(str(tmp_path / "one.pcap"), [Ether() / IP() / ("x" * 26)])
    packet = "STLPktBuilder(pkt='one.pcap', path_relative_to_profile=True)"
    loaded = STLProfile.load(profile(tmp_path, result=f"[STLStream(packet={packet})]"))
    assert loaded.get_streams()[0].get_pkt_len(count_crc=False) == 60


def test_data_classes_work_in_profiles(tmp_path: Path) -> None:
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    text += "@dataclass\nclass A:\n    x: int\n"
    STLProfile.load(write(tmp_path / "profile.py", text + profile(tmp_path).read_text()))


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_profiles_survive_json_and_yaml(tmp_path: Path, kind: str) -> None:
    original = STLProfile.load(profile(tmp_path))
    path = tmp_path / f"profile.{kind}"
    if kind == "json":
        original.dump_json(path)
    else:
        path.write_text(yaml.safe_dump(original.to_json()))
    assert STLProfile.load(path).to_json() == original.to_json()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("p.json", '[\n{"mode": }]', r"p\.json, line 2: not JSON"),
        ("p.json", '{"a": 1}', r"p\.json: a profile in JSON is a list of streams"),
        ("p.json", "[{}]", r"p\.json: stream '\?': field 'mode' is missing"),
        (
            "p.json",
            json.dumps([{"name": "S", "mode": {}, "packet": {"binary": "!"}}]),
            "field 'packet.binary'",
        ),
        (
            "p.json",
            json.dumps([{"mode": {"type": "slow"}, "packet": {"binary": "AAAA" * 20}}]),
            "is not one of",
        ),
        ("p.yaml", "- a: [1\n- b", r"p\.yaml, line 2: not YAML"),
    ],
)
def test_bad_json_and_yaml_are_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(STLProfileError, match=words):
        STLProfile.load(write(tmp_path / name, text))


@pytest.mark.parametrize("number", ["1", "1_three_streams", "2", "3"])
def test_listings_of_the_paper_load_unmodified(listings: Path, number: str) -> None:
    commands = STLProfile.load(listings / f"listing{number}.py").to_commands()
    streams = {"1": 1, "1_three_streams": 3, "2": 2, "3": 1}[number]
    assert [command["method"] for command in commands] == ["add_stream"] * streams + ["start_traffic"]


def test_commands_carry_multiplier_and_duration(tmp_path: Path) -> None:
    start = STLProfile.load(profile(tmp_path)).to_commands(port_id=1, mult="10kpps", duration=2.5)[-1][
        "params"
    ]
    assert start["mul"] == {"type": "pps", "value": 10000.0, "op": "abs"}
    assert (start["port_id"], start["duration"]) == (1, 2.5)


def test_a_profile_may_have_the_name_of_a_module_of_python(tmp_path: Path) -> None:
    """A library that imports cProfile, which imports `profile`, found the profile."""
    path = profile(tmp_path, before="import cProfile")
    script = f"from allosaur import STLProfile; print(len(STLProfile.load({str(path)!r}).get_streams()))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and int(done.stdout) > 0, done.stderr
