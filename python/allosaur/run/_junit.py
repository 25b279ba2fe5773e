"""JUnit XML of a run, for continuous integration: a test case for the verdict, and one for each threshold.

The form is the one that Jenkins, GitLab and GitHub's reporters read in common.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from allosaur.cli import _format

_VERDICT = "verdict"
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no place for (section 2.2)."""
_PROPERTIES = ("mode", "server", "multiplier", "duration_asked_s", "host")


def write_result(path: Path, document: Mapping[str, Any]) -> None:
    """Write what the JSON document of a run says; of several loads a suite each. Raises `OSError`."""
    if "loads" not in document:
        _write(path, document, {document["profile"]: _cases(document["profile"], document)})
        return
    suites = {name: _cases(name, {**document, **one}) for name, one in document["loads"].items()}
    told = {one["threshold"] for load in document["loads"].values() for one in load["thresholds"]}
    own = [one for one in document["thresholds"] if one["threshold"] not in told]
    if own:
        suites["run"] = [_threshold_case("run", one) for one in own]
    _write(path, document, suites)


def _cases(name: str, document: Mapping[str, Any]) -> list[ElementTree.Element]:
    """Return the cases of one load: its verdict, and each of its thresholds."""
    built_in = document["built_in"]
    verdict = _case(name, _VERDICT, document["duration_s"])
    stopped = document["cut_short"] or ("stopped by a signal" if document["interrupted"] else "")
    if stopped:
        _add(verdict, "error", "stopped", [stopped])
    elif not built_in["ok"]:
        _add(verdict, "failure", _VERDICT, [built_in["verdict"]])
    return [verdict, *(_threshold_case(name, one) for one in document["thresholds"])]


def _threshold_case(name: str, threshold: Mapping[str, Any]) -> ElementTree.Element:
    case = _case(name, threshold["threshold"])
    if not threshold["ok"]:
        _add(case, "failure", "threshold", [_found(threshold)])
    return case


def write_error(path: Path, profile: str, message: str, heading: Mapping[str, Any]) -> None:
    """Write that a run could not be made. Raises `OSError`."""
    case = _case(profile, _VERDICT)
    _add(case, "error", "error", [message])
    _write(path, heading, {profile: [case]})


def _found(threshold: Mapping[str, Any]) -> str:
    value, unit = threshold["value"], threshold["unit"]
    if value is None:
        return f"{threshold['metric']} was not measured"
    where = f" ({threshold['where']})" if threshold["where"] else ""
    limit = f"{threshold['operator']} {threshold['limit']:.10g} {unit}".rstrip()
    shown = f"{_format.beside(value, threshold['limit'])} {unit}".rstrip()
    return f"{threshold['metric']} is {shown}{where}, and may not be {limit}"


def _case(profile: str, name: str, duration_s: float = 0.0) -> ElementTree.Element:
    return ElementTree.Element(
        "testcase",
        {"classname": f"allosaur.{_stem(profile)}", "name": _text(name), "time": f"{duration_s:.3f}"},
    )


def _add(case: ElementTree.Element, kind: str, type_name: str, lines: Sequence[str]) -> None:
    text = _text("\n".join(lines))
    ElementTree.SubElement(case, kind, {"type": type_name, "message": text}).text = text


def _write(
    path: Path, document: Mapping[str, Any], suites: Mapping[str, Sequence[ElementTree.Element]]
) -> None:
    every = [case for cases in suites.values() for case in cases]
    root = ElementTree.Element("testsuites", {"name": "allosaur", **_counts(every)})
    properties = {name: document[name] for name in _PROPERTIES if document.get(name) is not None}
    properties["version"] = document["tool"]["version"]
    # The form has no place for fractions of a second, nor for a time zone.
    more = {"skipped": "0", "timestamp": document["started"][:19], "hostname": _text(document["host"])}
    for name, cases in suites.items():
        about = {"name": f"allosaur.{_stem(name)}", **_counts(cases), **more}
        suite = ElementTree.SubElement(root, "testsuite", about)
        listed = ElementTree.SubElement(suite, "properties")
        for one, value in properties.items():
            ElementTree.SubElement(listed, "property", {"name": one, "value": _text(str(value))})
        suite.extend(cases)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _counts(cases: Sequence[ElementTree.Element]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "time": f"{sum(float(case.attrib['time']) for case in cases):.3f}",
    }


def _stem(profile: str) -> str:
    return _text(Path(profile).stem) or "run"


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
