"""docs/guide/thresholds.md lists the metrics that there are. `ALLOSAUR_WRITE_DOCS=1` writes the list anew."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from allosaur.run._metrics import Metric
from allosaur.run.emulation import _metrics as emulation
from allosaur.run.flows import _metrics as flows
from allosaur.run.streams import _metrics as streams

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "thresholds.md"
BEGIN, END = "<!-- metrics: begin -->\n", "<!-- metrics: end -->"


def table(metrics: Sequence[Metric]) -> str:
    lines = ["| metric | unit | labels | is |", "|---|---|---|---|"]
    for one in metrics:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        unit = one.unit.name.replace("us", "time")
        lines.append(f"| `{one.name}` | {unit} | {labels} | {one.meaning} |")
    return "\n".join(lines)


def test_the_page_lists_every_metric() -> None:
    kinds = {"streams": streams, "flows": flows, "emulated clients": emulation}
    written = "\n".join(f"**Of {name}:**\n\n{table(kind.METRICS)}\n" for name, kind in kinds.items())
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    shown, _, after = rest.partition(END)
    if os.environ.get("ALLOSAUR_WRITE_DOCS"):
        PAGE.write_text(f"{before}{BEGIN}{written}{END}{after}", encoding="utf-8")
        return
    assert shown == written
