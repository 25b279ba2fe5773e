"""`ndr` by TRex's options: what they become, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from allosaur.cli._parser import build
from allosaur.cli.commands import COMMANDS
from allosaur.cli.trex import _ndr


def words(*given: str) -> list[str]:
    found = _ndr.words(_ndr._parser().parse_args(list(given)))
    # Each is one that `allosaur ndr` knows.
    build(COMMANDS).parse_args(["ndr", *found])
    return found


def after(option: str, found: list[str]) -> str:
    return found[found.index(option) + 1]


def test_what_is_usual_is_what_is_usual_there() -> None:
    found = words("--ports", "0", "1")
    assert found[0] == "imix"
    assert {name: after(name, found) for name in ("--search", "--loss", "--precision", "-d", "--missed")} == {
        "--search": "binary",
        "--loss": "0.1%",
        "--precision": "1%",
        "-d": "20s",
        "--missed": "2%",
    }
    assert (after("--ports", found), after("--max-trials", found)) == ("0", "10")


def test_all_options_of_streams() -> None:
    found = words(
        *(
            "--stl",
            "-s",
            "lab",
            "--ports",
            "2",
            "3",
            "0",
            "1",
            "--bi-dir",
            "-p",
            "0",
            "-e",
            "0.5",
            "-t",
            "5",
            "-x",
            "7",
        ),
        *(
            "-q",
            "1",
            "--max-latency",
            "100",
            "--lat-tolerance",
            "1",
            "-n",
            "2",
            "-o",
            "out.json",
            "-f",
            "plugin.py",
        ),
        *(
            "--tunables",
            "a=1,b=2",
            "--opt-bin-search",
            "--profile",
            "bench.py",
            "--prof-tun",
            "size=64",
            "-lpps",
            "100",
        ),
        *("-v", "-ti", "name", "-ft", "30", "--force-map", "--opt-bin-search-percent", "4"),
    )
    assert found == [
        *("bench.py", "--server", "lab", "--search", "guided", "-d", "5s", "--precision", "0.5%"),
        *("--max-trials", "7", "--missed", "1%", "--loss", "0%", "--ports", "2,3,0,1", "-l", "100"),
        *("--fail-if", "latency.p99>100us", "--points", "1.000000000,0.500000000", "--out", "out.json"),
        *("--plugin", "plugin.py", "--plugin-tunable", "a=1,b=2", "-t", "size=64"),
    ]


def test_all_options_of_flows() -> None:
    found = words("--astf", "--high-mult", "200", "--low-mult", "2", "--profile", "http", "-lpps", "10")
    assert found[0] == "http"
    assert (after("--max", found), after("--min", found), after("--loss", found)) == ("200", "2", "0")
    assert "--ports" not in found


def test_a_file_has_the_names_of_trex(tmp_path: Path) -> None:
    path = tmp_path / "ndr.yaml"
    path.write_text(
        "pdr: 0.2\niteration_duration: 3\ntunables: {most: 1}\nplugin_file: p.py\n", encoding="utf-8"
    )
    options = _ndr._parser().parse_args(["--ports", "0", "1"])
    _ndr._take(options, _ndr._read_yaml(path))
    found = _ndr.words(options)
    assert (after("--loss", found), after("-d", found), after("--plugin-tunable", found)) == (
        "0.2%",
        "3s",
        "most=1",
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--ports", "0"), "write pairs of ports"),
        (("--ports", "0", "2"), "write pairs of ports"),
        (("-n", "11"), "there may be 1 to 10 results"),
        (("-p", "much"), "invalid float value"),
        (("--stl", "--astf"), "not allowed with"),
        (("--yaml", "none.yaml"), "cannot be read"),
        (("--profile", "none.py"), "none.py"),
    ],
)
def test_what_is_refused(given: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _ndr.main(list(given)) == 2
    assert message in capsys.readouterr().err


def test_what_has_no_meaning_here_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert _ndr.main(["-ti", "name", "--force-map", "--profile", "none.py"]) == 2
    err = capsys.readouterr().err
    assert "warning: title: " in err
    assert "warning: force_map_table: " in err
