"""What `allosaur run` leaves for programs: its document, by the published schema, and JUnit XML."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from allosaur.cli import _result
from allosaur.run import _junit
from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

pytestmark = pytest.mark.usefixtures("binary")

SCHEMA: dict[str, Any] = json.loads((files("allosaur") / "schemas" / "run.json").read_text(encoding="utf-8"))
BURST = "STLTXSingleBurst(pps=1000, total_pkts=200)"
LOSSY = ["--local", "--local-ports", "memory:loss=20%:seed=3,memory"]
MEASURED = "flow_stats=STLFlowLatencyStats(pg_id=5)"
#: What the form has, of those who read it: attributes by element.
ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"name", "classname", "time"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
}


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, with every key that it does not describe forbidden: what we write is described whole."""
    found = copy.deepcopy(schema)

    def close(one: Any) -> None:
        if isinstance(one, dict):
            if one.keys() & {"$ref", "allOf", "properties", "if"}:
                one["unevaluatedProperties"] = False
            inside(one)

    def inside(one: dict[str, Any]) -> None:
        for value in one.get("properties", {}).values():
            close(value)
        for key in ("items", "additionalProperties"):
            close(one.get(key))
        for part in one.get("allOf", []):
            inside(part)

    for definition in found["$defs"].values():
        inside(definition)
    close(found)
    return found


STRICT = jsonschema.Draft202012Validator(strict(SCHEMA), format_checker=jsonschema.FormatChecker())


def cases(path: Path) -> list[TestCase]:
    """The test cases of a file, which has what readers of the form know and no more."""
    for element in ElementTree.parse(path).iter():
        assert element.attrib.keys() == ATTRIBUTES[element.tag], element.tag
    found = JUnitXml.fromfile(str(path))
    (suite,) = found
    assert isinstance(suite, TestSuite)
    listed = list(suite)
    results = [result for case in listed for result in case.result]
    assert (suite.tests, suite.failures, suite.errors) == (
        len(listed),
        sum(isinstance(one, Failure) for one in results),
        sum(isinstance(one, Error) for one in results),
    )
    return listed


def test_the_schema_is_one_and_of_this_version() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$defs"]["common"]["properties"]["schema"]["const"] == _result.SCHEMA
    assert SCHEMA["$id"].endswith(f":{_result.SCHEMA}")


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "results.json", tmp_path / "junit.xml"


def document(path: Path) -> dict[str, Any]:
    """A document, which is as the schema says."""
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [error.message for error in STRICT.iter_errors(found)] == []
    assert isinstance(found, dict)
    return found


def test_a_run_of_streams(allosaur: Any, profile: Callable[..., Path], paths: tuple[Path, Path]) -> None:
    out, junit = paths
    report = out.with_name("report.html")
    limits = ["--fail-if", "loss>30%", "latency.p99<1ns", "latency.max{stream=only}>9s", "loss.packets>1"]
    words = ["--out", out, "--junit", junit, "--report", report, *limits]
    ended = allosaur("run", profile(mode=BURST, stream=MEASURED), *LOSSY, *words, in_time=True)
    assert ended.code == 1, ended
    found = document(out)
    assert [(one["threshold"], one["ok"]) for one in found["thresholds"]] == [
        ("loss>30%", True),
        ("latency.p99<1ns", True),
        ("latency.max{stream=only}>9s", True),
        ("loss.packets>1", False),
    ]
    lost = found["lost_packets"]
    (reason,) = found["reasons"]
    assert reason == (f"threshold loss.packets>1 was crossed: loss.packets is {lost}, and may not be > 1")
    assert found["built_in"]["ok"]
    assert found["thresholds"][1]["where"] == "stream only, port 0"
    for shown in ("fail if", "CROSSED", "holds", f"FAILED: {reason}.", f"Result: {out}", f"JUnit: {junit}"):
        assert shown in ended.out, shown
    verdict, *thresholds = cases(junit)
    assert (verdict.name, verdict.classname, verdict.result) == ("verdict", "allosaur.profile", [])
    assert [case.name for case in thresholds] == [one["threshold"] for one in found["thresholds"]]
    (failure,) = thresholds[-1].result
    assert isinstance(failure, Failure)
    assert failure.message == f"loss.packets is {lost}, and may not be > 1"
    page = report.read_text(encoding="utf-8")
    assert "not loss.packets&gt;1" in page
    assert "--fail-if" in page, "the command that does it again has the thresholds"


def test_a_run_of_flows(allosaur: Any, paths: tuple[Path, Path]) -> None:
    out, junit = paths
    words = ["--local", "-d", "1", "-m", "20", "-l", "50", "-t", "rate=2", "--out", out, "--junit", junit]
    limits = ["latency.p99>5s", "errors>1m", "missed>100%", "unanswered>0%", "connected.fps<1fps"]
    ended = allosaur("run", "http", *words, "--fail-if", *limits)
    assert ended.code == 0, ended
    found = document(out)
    assert found["mode"] == "stateful"
    assert [one["ok"] for one in found["thresholds"]] == [True] * 5
    assert "all 5 thresholds hold" in ended.out
    assert [case.result for case in cases(junit)] == [[]] * 6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fail-if", "latency.p99>1us"], "does not measure latency"),
        (["--fail-if", "loss{stream=onyl}>1%"], "did you mean only? It has only"),
        (["--fail-if", "loss{port=4}>1%"], "counts no port '4'"),
        (["--fail-if", "=9"], "'=9' is not a threshold"),
        (["--fail-if", "connected.fps<1cps"], "no metric 'connected.fps'"),
        (["--port-counters", "--fail-if", "loss{stream=only}>1%"], "counts no stream 'only'"),
        (["--port-counters", "--fail-if", "other.packets>1"], "counted by ports"),
        (["--local-ports", "memory", "--fail-if", "loss>1%"], "no port receives what port 0 sends"),
    ],
)
def test_what_is_not_measured_is_refused_before_anything_is_sent(
    allosaur: Any, profile: Callable[..., Path], paths: tuple[Path, Path], words: list[str], said: str
) -> None:
    out, junit = paths
    ended = allosaur("run", profile(), "--local", "--out", out, "--junit", junit, *words)
    ended.refused(said)
    assert said in document(out)["error"]
    ((error,),) = (case.result for case in cases(junit))
    assert isinstance(error, Error)
    assert said in str(error.message)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["latency.p99>1us"], "-l PPS measures it"),
        (["unanswered{template=web}>1%"], "counts no template 'web'"),
        (["lost.messages>1"], "no UDP messages"),
        (["loss>1%"], "no metric 'loss'"),
    ],
)
def test_nor_of_flows(allosaur: Any, words: list[str], said: str) -> None:
    allosaur("run", "http", "--local", "--fail-if", *words).refused(said)


@pytest.mark.parametrize("option", ["--out", "--junit"])
def test_a_file_that_cannot_be_is_known_before(
    allosaur: Any, profile: Callable[..., Path], option: str
) -> None:
    allosaur("run", profile(), "--local", option, "nowhere/file").refused(option, "no folder nowhere")


def test_a_run_without_thresholds_is_one_case(
    tmp_path: Path, allosaur: Any, profile: Callable[..., Path]
) -> None:
    done = allosaur("run", profile(mode=BURST), *LOSSY, "--json", "--junit", "j.xml")
    assert done.code == 1, done
    found = done.json()
    assert list(STRICT.iter_errors(found)) == []
    assert (found["thresholds"], found["built_in"]["verdict"]) == ([], found["verdict"])
    ((failure,),) = (case.result for case in cases(tmp_path / "j.xml"))
    assert isinstance(failure, Failure)
    assert failure.message == found["verdict"]


def test_characters_that_xml_has_not_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "j.xml"
    _junit.write_error(path, "a\x00<b>.py", "bad \x1b[31m & \ud800", _result.heading("run"))
    ((error,),) = (case.result for case in cases(path))
    assert str(error.message) == "bad \ufffd[31m & \ufffd"


def test_a_profile_behind_thresholds_is_told_where_to_stand(allosaur: Any) -> None:
    allosaur("run", "--fail-if", "loss>1%", "imix", "--local").refused("'imix'", "PROFILE stands before")
