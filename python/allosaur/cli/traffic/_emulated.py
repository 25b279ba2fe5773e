"""What emulated clients count, for `allosaur stats`: beside other traffic, where there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allosaur.cli import _emulated, _format, _registry
from allosaur.cli._answer import Answer
from allosaur.cli._errors import explained

if TYPE_CHECKING:
    from allosaur import STLClient

_HEADER = ("emulated clients", "value", "unit", "meaning")


def read(client: STLClient) -> Answer | None:
    """Return what they count; `None` without clients, and where the server has no registry."""
    with explained("cannot read the counters of emulated clients"):
        metrics = _emulated.read(client)
    if metrics is None or not _emulated.count(metrics):
        return None
    rows = [
        [
            ("! " if one.is_wrong else "")
            + " ".join(filter(None, (_emulated.name(one), _registry.where(one)))),
            _registry.said(one.value),
            one.family.unit or "",
            one.family.help,
        ]
        for one in (*_emulated.state(metrics), *_emulated.counters(metrics))
    ]
    table = _format.table(_HEADER, rows, texts=(_HEADER[0], *_HEADER[2:]))
    fields = {"clients": _emulated.count(metrics), "metrics": _registry.objects(metrics)}
    return Answer(table, {"emulation": fields})
