"""Streams go over the wire in the types that TRex's official client sends: 1 is not "1", and 12 not 12.0."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from wire_cases import made  # noqa: E402

DUMMY = 8
#: Fields that only our server knows; others take no notice of them.
OURS = {"scale_isg"}
Case = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def cases(recorded: Path) -> list[Case]:
    """What is compared."""
    folder = recorded / "pcap"
    return [
        *(("bursts", {"ibg": gap}) for gap in (0, 12, 12.5, 1e6)),
        *(("bursts", {}),),
        *(("chain", {"names": names, "isg": 7}) for names in ((1, 2), ("1", "2"), ("a", "b"))),
        ("chain", {"names": ("", ""), "isg": 7.0}),
        *(
            ("capture", {"pcap_file": str(folder / "delay_10_http_browsing_0.pcap"), **gaps})
            for gaps in (
                {},
                {"ipg_usec": 12},
                {"ipg_usec": 12.5, "speedup": 2},
                {"min_ipg_usec": 40},
                {"loop_count": 3, "speedup": 3},
                {"src_mac_pcap": True, "dst_mac_pcap": True},
            )
        ),
        *(
            (
                "split",
                {"pcap_file": str(folder / "delay_10_http_browsing_0.pcap"), "split_mode": "IP", **gaps},
            )
            for gaps in ({}, {"ipg_usec": 12}, {"loop_count": 2, "dst_mac_pcap": True})
        ),
    ]


@pytest.fixture(scope="module")
def theirs(client_python: str, client_environment: dict[str, str], cases: list[Case]) -> list[Any]:
    done = subprocess.run(
        [client_python, "-W", "ignore", str(HERE / "wire.py")],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=client_environment,
    )
    assert done.returncode == 0, f"the official client failed:\n{done.stdout}\n{done.stderr}"
    streams: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return streams


def rounded(value: Any) -> Any:
    """Times as they are to the nanosecond: sums of fractions differ far behind it, by how they are added."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 3) if isinstance(value, float) else value


def without_what_is_not_sent(stream: dict[str, Any]) -> dict[str, Any]:
    """A stream that only takes time has some packet, which nobody sees."""
    return {**stream, "packet": None} if stream["flags"] & DUMMY else stream


def test_the_text_of_each_stream_is_theirs(cases: list[Case], theirs: list[Any]) -> None:
    for (name, arguments), wanted in zip(cases, theirs, strict=True):
        ours = json.loads(json.dumps(made(name, arguments)))
        ours = [{key: value for key, value in one.items() if key not in OURS} for one in ours]
        for number, (one, other) in enumerate(zip(ours, wanted, strict=True)):
            seen = [without_what_is_not_sent(rounded(stream)) for stream in (one, other)]
            texts = [json.dumps(stream, sort_keys=True) for stream in seen]
            assert texts[0] == texts[1], f"{name} {arguments}, stream {number}"
