"""The server's registry in a run: thresholds by its names, and counters that should be zero and grew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from allosaur.cli._errors import CommandError
from allosaur.metrics import Metrics
from allosaur.run import _thresholds
from allosaur.run._registry import Registry
from allosaur.run._thresholds import Thresholds


def reading(**values: dict[tuple[str, ...], int]) -> Metrics:
    """Port 0 and 1 count packets and losses; a gauge; times."""
    family = {"unit": None, "labels": ["port"], "is_error": False, "help": "Packets."}
    lost = {**family, "is_error": True, "help": "Packets that were lost."}
    return Metrics.from_reply(
        {
            "time_ns": 1,
            "families": {
                "allosaur_packets": {**family, "kind": "counter"},
                "allosaur_lost": {**lost, "kind": "counter"},
                "allosaur_level": {**family, "kind": "gauge", "labels": []},
                "allosaur_times": {**family, "kind": "summary", "labels": []},
            },
            "metrics": {
                f"allosaur_{name}": [[list(labels), value] for labels, value in series.items()]
                for name, series in values.items()
            },
        }
    )


class Client:
    def __init__(self, *readings: Metrics, knows: bool = True) -> None:
        self.readings = list(readings)
        self.knows = knows

    def get_server_supported_cmds(self) -> list[str]:
        return ["get_metrics"] if self.knows else []

    def get_metrics(self, prefixes: None, families: bool) -> Metrics:
        read = self.readings.pop(0)
        return read if families else replace(read, families={})


def of(*words: str) -> Thresholds:
    return _thresholds.read_of(words, {})[""]


BEFORE = reading(packets={("0",): 10, ("1",): 5}, lost={("0",): 2, ("7",): 0}, level={(): 9})
AFTER = reading(packets={("0",): 110, ("1",): 7}, lost={("0",): 5, ("7",): 4}, level={(): 3})


def measured() -> Registry:
    registry = Registry(Client(BEFORE, AFTER))
    registry.begin()
    registry.end()
    return registry


@pytest.mark.parametrize(
    ("text", "value", "ok"),
    [
        ("allosaur_packets>101", 102, False),
        ("allosaur_packets{port=1}>2", 2, True),
        ("allosaur_packets{port=*}<2", 2, True),
        ("allosaur_packets{port=9}>1", None, False),
        ("allosaur_level>2", 3, False),
    ],
)
def test_counters_are_differences_and_gauges_as_they_are(text: str, value: float | None, ok: bool) -> None:
    thresholds = of(text)
    (checked,) = thresholds.check(measured().document(thresholds))
    assert (checked.reading.value, checked.ok) == (value, ok)


def test_what_grew_and_should_not_is_told_but_not_of_others_or_twice() -> None:
    assert measured().grown_errors((), {0, 1}) == ["Packets that were lost: 3 (allosaur_lost)"]
    assert measured().grown_errors(("allosaur_lo",), {0, 1}) == []
    assert measured().grown_errors((), {1}) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("allosaur_packts>1", "the server has no metric 'allosaur_packts'; did you mean allosaur_packets?"),
        ("allosaur_packets{prt=1}>1", "allosaur_packets has no label 'prt'; it has port"),
        ("allosaur_level{port=1}>1", "it has none"),
        ("allosaur_times>1", "allosaur_times is no number, but of kind summary"),
    ],
)
def test_what_the_server_does_not_count_is_refused(text: str, said: str) -> None:
    with pytest.raises(CommandError) as raised:
        Registry(Client(BEFORE)).check(of(text))
    assert said in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_server_without_a_registry_refuses_its_names_and_tells_nothing() -> None:
    registry = Registry(Client(knows=False))
    registry.begin()
    registry.end()
    assert registry.grown_errors((), {0}) == []
    registry.check(Thresholds())
    with pytest.raises(CommandError, match="does not tell its metrics"):
        registry.check(of("allosaur_packets>1"))


def test_a_run_has_thresholds_of_the_registry(allosaur: Any) -> None:
    limits = ("allosaur_port_packets{port=0,direction=tx}<100", "allosaur_port_queue_ful>0")
    words = ("run", "imix", "--local", "-d", "300ms", "-m", "1kpps", "--json")
    ended = allosaur(*words, "--fail-if", limits[0])
    (threshold,) = ended.json()["thresholds"]
    assert (ended.code, threshold["ok"], threshold["value"] > 100) == (0, True, True), ended
    allosaur(*words, "--fail-if", limits[1]).refused("did you mean allosaur_port_queue_full?")
