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
    """Write what the JSON document of a run says. Raises `OSError`."""
    built_in = document["built_in"]
    verdict = _case(document["profile"], _VERDICT, document["duration_s"])
    stopped = document["cut_short"] or ("stopped by a signal" if document["interrupted"] else "")
    if stopped:
        _add(verdict, "error", "stopped", [stopped])
    elif not built_in["ok"]:
        _add(verdict, "failure", _VERDICT, [built_in["verdict"]])
    cases = [verdict]
    for one in document["thresholds"]:
        case = _case(document["profile"], one["threshold"])
        if not one["ok"]:
            _add(case, "failure", "threshold", [_found(one)])
        cases.append(case)
    properties = {name: document[name] for name in _PROPERTIES if document.get(name) is not None}
    properties["version"] = document["tool"]["version"]
    _write(path, document["profile"], cases, properties, document["started"], document["host"])


def write_error(path: Path, profile: str, message: str, heading: Mapping[str, Any]) -> None:
    """Write that a run could not be made. Raises `OSError`."""
    case = _case(profile, _VERDICT)
    _add(case, "error", "error", [message])
    version = {"version": heading["tool"]["version"]}
    _write(path, profile, [case], version, heading["started"], heading["host"])


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
    path: Path,
    profile: str,
    cases: Sequence[ElementTree.Element],
    properties: Mapping[str, Any],
    started: str,
    host: str,
) -> None:
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "time": f"{sum(float(case.attrib['time']) for case in cases):.3f}",
    }
    root = ElementTree.Element("testsuites", {"name": "allosaur", **counts})
    # The form has no place for fractions of a second, nor for a time zone.
    more = {"skipped": "0", "timestamp": started[:19], "hostname": _text(host)}
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": f"allosaur.{_stem(profile)}", **counts, **more}
    )
    listed = ElementTree.SubElement(suite, "properties")
    for name, value in properties.items():
        ElementTree.SubElement(listed, "property", {"name": name, "value": _text(str(value))})
    suite.extend(cases)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _stem(profile: str) -> str:
    return _text(Path(profile).stem) or "run"


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
