"""Metrics as a server writes them: OpenMetrics 1.0, read into families.

The format: https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md. What is
read is what servers of ours write: no exemplars, no times of samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

Labels = tuple[tuple[str, str], ...]

_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)')
_ESCAPED = re.compile(r"\\(.)")
END = "# EOF"


class MetricsError(Exception):
    """The text is not OpenMetrics, or not all of it. The message says where and what."""


@dataclass(frozen=True)
class Sample:
    """A value of a series: its name, its labels in order, and the number as it was written."""

    name: str
    labels: Labels
    number: str

    @property
    def value(self) -> float:
        """The number."""
        return float(self.number)


@dataclass
class Family:
    """A metric with its series: name, kind (`counter`, `gauge`, ...), unit (`seconds`, ...) and meaning."""

    name: str
    kind: str = "unknown"
    unit: str = ""
    help: str = ""
    samples: list[Sample] = field(default_factory=list)


def read(text: str) -> list[Family]:
    """Return the families of a text, in its order. Raises :class:`MetricsError`."""
    lines = text.split("\n")  # names may have what else ends lines
    if lines[-2:] != [END, ""]:
        raise MetricsError(f"the text does not end with {END!r}: it was cut off, or it is not OpenMetrics")
    families: dict[str, Family] = {}
    family: Family | None = None
    for number, line in enumerate(lines[:-2], 1):
        if line.startswith("# "):
            _, word, name, *rest = [*line.split(" ", 3), ""]
            family = families.setdefault(name, Family(name))
            _describe(family, word, rest[0], number)
            continue
        sample = _sample(line, number)
        if family is None or not sample.name.startswith(family.name):
            raise MetricsError(f"line {number}: {sample.name} stands under no metric of that name")
        family.samples.append(sample)
    return list(families.values())


def _describe(family: Family, word: str, text: str, number: int) -> None:
    if word == "TYPE":
        family.kind = text
    elif word == "UNIT":
        family.unit = text
    elif word == "HELP":
        family.help = _unescaped(text)
    else:
        raise MetricsError(f"line {number}: '# {word[:20]}' is none of TYPE, UNIT, HELP")


def _sample(line: str, number: int) -> Sample:
    found = _SAMPLE.fullmatch(line)
    if found is None:
        raise MetricsError(f"line {number}: no sample: {line[:80]!r}")
    name, labels, value = found.groups()
    try:
        float(value)
    except ValueError:
        raise MetricsError(f"line {number}: {value[:40]!r} is no number") from None
    return Sample(name, tuple(_labels(labels or "", number)), value)


def _labels(text: str, number: int) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None:
            raise MetricsError(f"line {number}: no label: {text[at : at + 40]!r}")
        yield found[1], _unescaped(found[2])
        at = found.end()


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text)
