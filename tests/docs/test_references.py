"""Reference pages that come from the code: counters, field engine. `ALLOSAUR_WRITE_DOCS=1` writes them."""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import allosaur
from allosaur import STLVM
from allosaur.report._counters import PortCounters
from allosaur.report._streams import StreamCounters, StreamLatency
from allosaur.run.flows._hints import hint, meaning
from allosaur.server import LocalServer

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
INSTRUCTIONS = (
    *(
        "STLVmFlowVar",
        "STLVmFlowVarRepeatableRandom",
        "STLVmTupleGen",
        "STLVmWrFlowVar",
        "STLVmWrMaskFlowVar",
    ),
    *("STLVmFixIpv4", "STLVmFixChecksumHw", "STLVmFixIcmpv6", "STLVmTrimPktSize"),
)
SHORT = (
    *("var", "repeatable_random_var", "tuple_var", "write", "write_mask", "fix_chksum", "fix_chksum_hw"),
    *("fix_chksum_icmpv6", "trim", "set_cached"),
)
#: For who opens the file, not for who reads the page.
WRITTEN = "<!-- Written by `ALLOSAUR_WRITE_DOCS=1 pytest tests/docs/test_references.py`: do not edit it. -->"


def compare(page: Path, text: str) -> None:
    """Check that a page is what the code says, or write it."""
    if os.environ.get("ALLOSAUR_WRITE_DOCS"):
        page.write_text(text, encoding="utf-8")
    else:
        assert page.read_text(encoding="utf-8") == text, f"{page.name} is not what the code says"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    names = list(header)
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    return lines + [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]


def field_docs(of: type) -> dict[str, str]:
    """What stands below each field of a dataclass."""
    tree = ast.parse(inspect.getsource(of)).body[0]
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    last = ""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.target.id
            found[last] = ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and last:
            found[last] = " ".join(str(node.value.value).split())
    return found


def of_dataclass(of: type, usual: dict[str, str]) -> list[str]:
    described = {name: text or usual.get(name, "") for name, text in field_docs(of).items()}
    missing = [name for name, text in described.items() if not text]
    assert not missing, f"{of.__name__}: nothing says what these are: {missing}"
    return table(["counter", "is"], [[f"`{name}`", text] for name, text in described.items()])


USUAL = {
    "tx_packets": "packets sent",
    "tx_bytes": "bytes sent, with FCS",
    "rx_packets": "packets received",
    "rx_bytes": "bytes received, with FCS",
    "tx_by_size": "packets sent, by frame size with FCS",
    "rx_by_size": "packets received, by frame size with FCS",
    "pg_id": "the number of the packet group",
    "lost_packets": "packets that were sent and not received",
    "missed_packets": "packets whose time had come and that were not sent",
    "latency": "times, where the stream is measured: see below",
    "min_us": "the shortest time, in microseconds",
    "average_us": "the average time",
    "max_us": "the longest time",
    "jitter_us": "how much the time varies from packet to packet (RFC 3550)",
    "p90_us": "90 % of the packets were no slower",
    "p99_us": "99 % of the packets were no slower",
    "p99_9_us": "99.9 % of the packets were no slower",
}


def test_counters() -> None:
    with LocalServer(stateful=True) as stateful, stateful.client() as client:
        rows: list[dict[str, Any]] = client._connection.call("get_counter_desc", profile_id="_")["data"]
    lines = ["# Counters", ""]
    lines += [
        "What ports, streams and flows count, by name, and what to do about an error.",
        "Results in JSON have them by these names ([command line](../guide/command-line.md#json));",
        "thresholds have [metrics](../guide/thresholds.md#metrics) made of them.",
        "",
        "## Of ports",
        "",
        *of_dataclass(PortCounters, USUAL),
        "",
        "## Of streams",
        "",
        *of_dataclass(StreamCounters, USUAL),
        "",
        "## Latency of a stream",
        "",
        *of_dataclass(StreamLatency, {**USUAL, "p50_us": "half of the packets were no slower"}),
        "",
        "## Of flows",
        "",
        "They have TRex's names. Clients and servers count each by themselves; `allosaur stats --counters`",
        "shows those that are not zero. An **error** should stay zero.",
        "",
    ]
    real = [row for row in rows if row["real"]]
    assert len(real) > 100
    lines += table(
        ["counter", "counts", "unit", "when it is not zero"],
        [
            [
                f"`{row['name']}`",
                meaning(row["name"]) if row["info"] == "error" else row["help"],
                row["units"],
                f"**error**: {hint(row['name'])}" if row["info"] == "error" else "",
            ]
            for row in real
        ],
    )
    compare(REFERENCE / "counters.md", "\n".join([*lines, "", WRITTEN]) + "\n")


def signature(of: Any, name: str) -> str:
    return (
        name + str(inspect.signature(of)).replace("(self, ", "(").replace("(self)", "()").partition(" -> ")[0]
    )


def plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def test_field_engine() -> None:
    lines = ["# Field engine", "", "Every instruction that changes packets while they are sent."]
    lines += ["How to use it is in [the guide](../guide/field-engine.md).", "", "## Instructions", ""]
    lines += ["In a list for `STLScVmRaw`. Each becomes one instruction of the server, in this order.", ""]
    for name in INSTRUCTIONS:
        of = getattr(allosaur, name)
        made = inspect.signature(of.__init__)
        lines += [
            f"### {name}",
            "",
            plain(inspect.getdoc(of) or ""),
            "",
            "| parameter | without it |",
            "|---|---|",
        ]
        for parameter in list(made.parameters.values())[1:]:
            default = "must be given" if parameter.default is parameter.empty else f"`{parameter.default!r}`"
            lines.append(f"| `{parameter.name}` | {default} |")
        lines.append("")
    lines += [
        "## The short form",
        "",
        "Methods of `STLVM`, each of which adds one of these instructions.",
        "",
    ]
    lines += table(
        ["method", "does"],
        [[f"`{name}`", plain(inspect.getdoc(getattr(STLVM, name)) or "")] for name in SHORT],
    )
    compare(REFERENCE / "field-engine.md", "\n".join([*lines, "", WRITTEN]) + "\n")


def test_no_instruction_is_forgotten() -> None:
    from allosaur.streams import _vm

    known = {name for name in vars(_vm) if name.startswith("STLVm")}
    assert known == {*INSTRUCTIONS}
