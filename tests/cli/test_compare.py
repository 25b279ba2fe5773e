"""`allosaur compare`: two results of `allosaur run` or `ndr`, and which is worse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli.compare._rows import Row

needs_server = pytest.mark.usefixtures("binary")


def limits_of(*limits: tuple[str, float | None], precision: float = 0.005) -> dict[str, Any]:
    cases = [
        {
            "name": "64 bytes",
            "unit": "pps",
            "limits": [
                {
                    "goal": goal,
                    "lower": None if load is None else {"load": load},
                    "upper": None if load is None else {"load": load / (1 - precision)},
                }
                for goal, load in limits
            ],
        }
    ]
    return {"command": "ndr", "schema": 1, "cases": cases, "search": {"precision": precision}}


@pytest.fixture
def compared(allosaur: Any, tmp_path: Path) -> Callable[..., Any]:
    def run(before: dict[str, Any], after: dict[str, Any], *words: str) -> Any:
        for name, value in (("a.json", before), ("b.json", after)):
            (tmp_path / name).write_text(json.dumps(value), encoding="utf-8")
        return allosaur("compare", "a.json", "b.json", *words)

    return run


def test_results_that_are_alike(compared: Callable[..., Any]) -> None:
    ended = compared(limits_of(("ndr", 1e6), ("pdr", 2e6)), limits_of(("ndr", 0.992e6), ("pdr", 2.1e6)))
    assert ended.code == 0, ended
    assert re.search(r"64 bytes ndr +1\.00 Mpps +992 kpps +-0\.80 % +same", ended.out)
    assert re.search(r"64 bytes pdr .*\+5\.00 % +better", ended.out)
    assert "none of 2 limits is worse" in ended.out


def test_a_result_that_is_worse(compared: Callable[..., Any]) -> None:
    before, after = limits_of(("ndr", 1e6)), limits_of(("ndr", 0.98e6), precision=0.01)
    ended = compared(before, after, "--json")
    value = ended.json()
    assert ended.code == 1
    assert (value["ok"], value["limits"][0]["result"]) == (False, "worse")
    assert value["limits"][0]["change"] == pytest.approx(-0.02)
    assert value["differences"] == ["precision: 0.005 and 0.01"]
    assert compared(before, after, "--tolerance", "3%").code == 0


def test_a_limit_that_is_missing_is_worse(compared: Callable[..., Any]) -> None:
    ended = compared(limits_of(("ndr", 1e6)), limits_of(("ndr", None)))
    assert ended.code == 1
    assert "missing" in ended.out
    assert compared(limits_of(("ndr", None)), limits_of(("ndr", 1e6))).code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no result of `allosaur run` or `allosaur ndr`"),
        ('{"command": "run"}', "no result of `allosaur run` or `allosaur ndr`"),
        ('{"command": "push", "verdict": ""}', "no result of `allosaur run` or `allosaur ndr`"),
        ('{"command": "ndr", "cases": [], "schema": 9}', "has schema 9"),
        ('{"command": "ndr", "cases": [], "schema": 1}', "no case and goal in common"),
    ],
)
def test_files_that_are_no_results(allosaur: Any, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    allosaur("compare", "a.json", "a.json").refused(message)


def test_a_file_that_is_not_there(allosaur: Any) -> None:
    allosaur("compare", "a.json", "b.json").refused("a.json: cannot be read")


def test_a_row_says_what_a_difference_is_worth() -> None:
    def word(before: float | None, after: float | None) -> str:
        return Row("64 ndr", before, after, 0.01, str).word

    assert [word(100, 100.5), word(100, 99.5), word(100, 98), word(100, 102)] == [
        "same",
        "same",
        "worse",
        "better",
    ]
    assert [word(None, None), word(None, 1.0), word(1.0, None)] == ["same", "better", "missing"]
    assert [word(None, None), word(None, 1), word(1, None)] == ["same", "better", "missing"]


def test_of_some_values_less_is_better() -> None:
    def word(before: float | None, after: float | None) -> str:
        return Row("loss", before, after, 0.01, str, more_is_better=False).word

    assert [word(0, 0), word(0, 1e-6), word(5, 0), word(5, 5.01), word(5, 6)] == [
        *("same", "worse", "better", "same", "worse")
    ]


def run_of(lost: int = 0, p99_us: float = 50.0, sent: int = 10_000, **more: Any) -> dict[str, Any]:
    """A result of `allosaur run` of streams, as far as it is compared."""
    direction = {"port": 0, "tx_packets": sent, "rx_packets": sent - lost, "lost_packets": lost}
    port = {
        "offered_packets": sent,
        "tx_packets": sent,
        "rx_packets": sent - lost,
        "missed_packets": 0,
        "tx_bytes": 64 * sent,
        "rx_bytes": 64 * (sent - lost),
        "other_packets": 0,
    }
    latency = dict.fromkeys(("min_us", "average_us", "max_us", "jitter_us", "p99_us"), p99_us)
    stream = {"port": 0, "name": "voip", "out_of_order_packets": 0, "latency": latency}
    return {
        "command": "run",
        "schema": 1,
        "mode": "stateless",
        "profile": "imix",
        "multiplier": "1kpps",
        "duration_s": 10.0,
        "ports": {"0": port},
        "directions": [{**direction, "duplicate_packets": 0}],
        "streams": [stream],
        "ok": not lost,
        "verdict": "all was received" if not lost else "lost",
        **more,
    }


def test_runs_that_are_alike(compared: Callable[..., Any]) -> None:
    ended = compared(run_of(), run_of(p99_us=51.0, sent=10_100))
    assert ended.code == 0, ended
    assert re.search(r"latency\.p99.* 50\.0 µs +51\.0 µs +\+2\.00 % +same", ended.out)
    assert re.search(r"tx\.pps .*\+1\.00 % +same", ended.out)
    # How much there was of it says nothing about how it went.
    assert "tx.packets" not in ended.out
    assert compared(run_of(), run_of(p99_us=51.0), "--tolerance", "1%").code == 1


def test_a_run_that_is_worse(compared: Callable[..., Any]) -> None:
    ended = compared(run_of(), run_of(lost=30, p99_us=80.0, multiplier="2kpps"), "--json")
    assert ended.code == 1
    value = ended.json()
    words = {row["metric"]: row["result"] for row in value["metrics"]}
    assert (words["loss"], words["loss.packets"]) == ("worse", "worse")
    assert [word for name, word in words.items() if name.startswith("latency.p99 ")] == ["worse"]
    assert value["ok"] is False and "the second run failed: lost" in value["verdict"]
    assert value["differences"] == ["multiplier: 1kpps and 2kpps"]
    assert compared(run_of(lost=30, p99_us=80.0), run_of()).code == 0


def test_each_load_of_a_run_of_several_is_compared_by_its_name(compared: Callable[..., Any]) -> None:
    def run(**voip: Any) -> dict[str, Any]:
        loads = {
            name: {"kind": "stateless", **run_of(**more)} for name, more in (("imix", {}), ("voip", voip))
        }
        for load in loads.values():
            del load["mode"]
        return {"command": "run", "schema": 1, "loads": loads, "ok": True, "verdict": "all was received"}

    value = compared(run(), run(p99_us=80.0), "--json").json()
    words = {row["metric"]: row["result"] for row in value["metrics"]}
    assert words["loss (imix)"] == words["loss (voip)"] == "same"
    assert [name for name, word in words.items() if word == "worse" and "p99 " in name] == [
        "latency.p99 (voip, port 0)"
    ]
    missing = run()
    del missing["loads"]["voip"]
    value = compared(run(), missing, "--json").json()
    assert {row["result"] for row in value["metrics"] if "(voip" in row["metric"]} == {"missing"}


def test_only_results_of_the_same_command_are_compared(compared: Callable[..., Any]) -> None:
    compared(run_of(), limits_of(("ndr", 1e6))).refused("compare two of the same")


@needs_server
@pytest.mark.parametrize("profile", ["imix", "http"])
def test_real_results(allosaur: Any, profile: str) -> None:
    for name in ("a.json", "b.json"):
        assert allosaur("run", profile, "--local", "-m", "20", "-d", "0.3", "--out", name).code == 0
    ended = allosaur("compare", "a.json", "b.json", "--tolerance", "90%")
    assert ended.code == 0, ended
    assert "missed" in ended.out and "OK" in ended.out
