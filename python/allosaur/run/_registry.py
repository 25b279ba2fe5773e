"""The server's registry of metrics in a run: what grew of it, for thresholds by its names and for hints."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from allosaur.cli import _registry
from allosaur.cli._errors import bad_input, explained
from allosaur.cli._parser import nearest
from allosaur.run._thresholds import Threshold, unmeasured

if TYPE_CHECKING:
    from allosaur.metrics import MetricFamily, Metrics

_NEAR = 0.5
_GROWING = "counter"


class Registry:
    """The metrics of a server, from the start of a run to its end.

    `client` is any client of the server; a server that has no such command knows nothing.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._is_known = client is not None and _registry.tells(client)
        self._first: Metrics | None = None
        self._last: Metrics | None = None

    def check(self, thresholds: Sequence[Threshold]) -> None:
        """Refuse thresholds of what the server does not count. Raises :class:`CommandError`."""
        if not thresholds:
            return
        if not self._is_known:
            raise unmeasured(thresholds[0], "this server does not tell its metrics (get_metrics)")
        families = self._read().families
        for one in thresholds:
            name = one.metric.name
            if name not in families:
                meant = nearest(name, families, _NEAR)
                raise bad_input(
                    f"--fail-if '{one.text}': the server has no metric '{name}'{meant} The guide to metrics "
                    "lists them"
                )
            _check_labels(one, families[name])

    def begin(self) -> None:
        """Read what was counted before the run."""
        if self._is_known:
            self._first = self._read()

    def end(self) -> None:
        """Read what was counted until its end."""
        if self._is_known and self._first is not None:
            self._last = self._read()

    def document(self, thresholds: Sequence[Threshold]) -> dict[str, Any]:
        """Return what thresholds read: the differences of counters, gauges as they are."""
        names = dict.fromkeys(one.metric.name for one in thresholds)
        return {"metrics": {name: self._series(name) for name in names}} if names else {}

    def grown_errors(self, shown: tuple[str, ...], ports: Collection[int]) -> list[str]:
        """Return what should have stayed zero and grew, in words.

        Names that begin with one of `shown` are shown elsewhere; of others' ports nothing is told.
        """
        if self._last is None:
            return []
        found = []
        for name, family in self._last.families.items():
            if family.is_error and family.kind == _GROWING and not name.startswith(shown):
                own = {None, *map(str, ports)}
                grown = sum(value for labels, value in self._series(name) if labels.get("port") in own)
                if grown:
                    found.append(f"{family.help.rstrip('.')}: {grown:,.10g} ({name})")
        return found

    def _series(self, name: str) -> list[tuple[Mapping[str, str], float]]:
        if self._first is None or self._last is None:
            return []
        family, before = self._last.families[name], self._first.series(name)
        found: list[tuple[Mapping[str, str], float]] = []
        for labels, value in self._last.series(name).items():
            if not isinstance(value, (int, float)):
                continue
            old = before.get(labels, 0) if family.kind == _GROWING else 0
            counted = float(value) - (float(old) if isinstance(old, (int, float)) else 0.0)
            # A counter that began anew while the run went on has its own beginning.
            grown = float(value) if family.kind == _GROWING and counted < 0 else counted
            found.append((dict(zip(family.labels, labels, strict=True)), grown))
        return found

    def _read(self) -> Metrics:
        with explained("cannot read the server's metrics"):
            found: Metrics = self._client.get_metrics()
        return found


def _check_labels(threshold: Threshold, family: MetricFamily) -> None:
    if family.kind in ("histogram", "summary", "info"):
        raise unmeasured(threshold, f"{family.name} is no number, but of kind {family.kind}")
    for label in threshold.labels:
        if label not in family.labels:
            has = f"it has {', '.join(family.labels)}" if family.labels else "it has none"
            raise bad_input(f"--fail-if '{threshold.text}': {family.name} has no label '{label}'; {has}")
