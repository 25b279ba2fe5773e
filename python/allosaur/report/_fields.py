"""Counters as rows: a field of a dataclass says which counter of a server it is, and how it is called.

From the fields alone follow reading, adding, differences, plain data, rates and rows of tables, so a new
counter is one line in its dataclass. A counter that the server does not have is `None`, never a zero that
would look like a measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Counters = TypeVar("Counters", bound=DataclassInstance)
    Rates = TypeVar("Rates", bound=DataclassInstance)


def counter(*names: str, label: str = "", default: int | None = 0, **names_of: Sequence[str]) -> Any:
    """Return the field of a counter: the sum of what the server counts by these names.

    `names_of` are those of a side (`server=...`) where they differ. `label` is what a table of totals calls
    it; without one it is in no such table.
    """
    return field(default=default, metadata={"names": names, "label": label, "names_of": names_of})


def read(counters: type[Counters], *stats: Mapping[str, Any], side: str = "") -> dict[str, Any]:
    """Return the fields that have names, summed over what a server counted; see :func:`counter`."""
    found = {}
    for one in fields(counters):
        names = one.metadata.get("names_of", {}).get(side) or one.metadata.get("names", ())
        values = [part[name] for part in stats for name in names if part.get(name) is not None]
        if values:
            found[one.name] = values[0] if isinstance(values[0], Mapping) else sum(map(int, values))
    return found


def difference(later: Counters, earlier: Counters) -> Counters:
    """Return what was counted between two readings of the same counters."""
    found: Counters = _combined(later, earlier, -1)
    return found


def plus(a: Counters, b: Counters) -> Counters:
    """Return the sum. A counter is `None` in it only if neither has it."""
    found: Counters = _combined(a, b, 1)
    return found


def total(counters: Iterable[Counters], zero: Counters) -> Counters:
    """Return the sum of all, and `zero` of none."""
    result: Counters | None = None
    for one in counters:
        result = one if result is None else plus(result, one)
    return zero if result is None else result


def plain(counters: DataclassInstance) -> dict[str, Any]:
    """Return the fields as plain data."""
    return {one.name: _plain(getattr(counters, one.name)) for one in fields(counters)}


def rows(counters: Sequence[DataclassInstance]) -> Iterator[tuple[str, str, list[Any]]]:
    """Return name, label and values of each field that has a label, of some counters side by side."""
    for one in fields(counters[0]):
        if label := one.metadata.get("label"):
            yield one.name, label, [getattr(each, one.name) for each in counters]


def per_second(of: str, factor: int = 1) -> Any:
    """Return the field of a rate: how much a counter grows in a second, times `factor`."""
    return field(default=0.0, metadata={"of": of, "factor": factor})


def at_end(of: str) -> Any:
    """Return the field of a value that is no rate: what it is at the end of an interval."""
    return field(default=0, metadata={"of": of})


def rates_of(of: str, rates: type[Rates]) -> Mapping[str, Any]:
    """Return the metadata of a field that has the rates of a part of the counters."""
    return {"of": of, "rates": rates}


def between(kind: type[Rates], earlier: Any, later: Any, span_s: float) -> dict[str, Any]:
    """Return the fields of `kind` from two readings that are `span_s` seconds apart; none of no time."""
    if span_s <= 0:
        return {}
    found: dict[str, Any] = {}
    for one in fields(kind):
        if "of" not in one.metadata:
            continue
        before, after = (attrgetter(one.metadata["of"])(each) for each in (earlier, later))
        if "rates" in one.metadata:
            part = one.metadata["rates"]
            found[one.name] = part(**between(part, before, after, span_s))
        elif "factor" in one.metadata:
            found[one.name] = ((after or 0) - (before or 0)) * one.metadata["factor"] / span_s
        else:
            found[one.name] = after
    return found


def _combined(a: Any, b: Any, sign: int) -> Any:
    if a is None or b is None:
        return a if a is not None else b
    if is_dataclass(a) and not isinstance(a, type):
        names = [one.name for one in fields(a)]
        return replace(a, **{name: _combined(getattr(a, name), getattr(b, name), sign) for name in names})
    if isinstance(a, Mapping):
        return {key: a.get(key, 0) + sign * b.get(key, 0) for key in {**a, **b}}
    return a + sign * b


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return plain(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [*value] if isinstance(value, (list, tuple)) else value
