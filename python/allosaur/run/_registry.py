"""The server's registry of metrics in a run: what grew of it, for thresholds by its names and for hints."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from allosaur.cli._errors import bad_input, explained
from allosaur.cli._parser import nearest
from allosaur.metrics import MetricsReader
from allosaur.run._thresholds import Threshold, refuse_other_labels, unmeasured

if TYPE_CHECKING:
    from allosaur.metrics import MetricFamily, Metrics

_NEAR = 0.5


class Registry:
    """The metrics of a server, from the start of a run to its end.

    `client` is any client of the server; a server that has no such command knows nothing.
    """

    def __init__(self, client: Any) -> None:
        self._reader = MetricsReader(client)
        self._is_known = client is not None and self._reader.is_told
        self._first: Metrics | None = None
        self._grown: Metrics | None = None

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
            self._grown = self._read().since(self._first)

    def document(self, thresholds: Sequence[Threshold]) -> dict[str, Any]:
        """Return what thresholds read: what counters counted in the run, gauges as they are."""
        names = dict.fromkeys(one.metric.name for one in thresholds)
        found = self._grown
        series = {name: [] if found is None else list(found.described(name)) for name in names}
        return {"metrics": series} if names else {}

    def grown_errors(self, shown: tuple[str, ...], ports: Collection[int]) -> list[str]:
        """Return what should have stayed zero and grew, in words.

        Names that begin with one of `shown` are shown elsewhere; of others' ports nothing is told.
        """
        if self._grown is None:
            return []
        own, found = {None, *map(str, ports)}, []
        for name, family in self._grown.families.items():
            if family.is_error and family.kind == "counter" and not name.startswith(shown):
                series = self._grown.described(name)
                grown = sum(one.number for one in series if one.named_labels.get("port") in own)
                if grown:
                    found.append(f"{family.help.rstrip('.')}: {grown:,.10g} ({name})")
        return found

    def _read(self) -> Metrics:
        with explained("cannot read the server's metrics"):
            return self._reader.read()


def _check_labels(threshold: Threshold, family: MetricFamily) -> None:
    if family.kind in ("histogram", "summary", "info"):
        raise unmeasured(threshold, f"{family.name} is no number, but of kind {family.kind}")
    refuse_other_labels(threshold.labels, f"--fail-if '{threshold.text}'", family.name, family.labels)
