"""HdrHistograms: texts that the reference implementation wrote, and texts that are none."""

from __future__ import annotations

import base64
import zlib

import pytest
from allosaur import STLError
from allosaur.client._hdrh import decode, percentile, since

# Of 1 to ten million with three digits, as TRex has it.
EMPTY = "HISTFAAAABt4nJNpmSzMgADMUJoRTM6Y1mD/ASIAAEr9BCg="
MANY = "HISTFAAAADx4nJNpmSzMwMCgwgABzFCaEUzOmNZg/wEqwMLYcGDFqVlWDTDAzLSXn2mtABPTQWGmxfVMsw2YAOXPELM="


def written(*counts: int) -> str:
    """An HdrHistogram with these numbers at its first places; below zero, so many empty ones."""
    payload = bytes(_zigzag(count) for count in counts)
    header = bytes.fromhex("1c849303") + len(payload).to_bytes(4, "big") + bytes(4) + (3).to_bytes(4, "big")
    body = header + (1).to_bytes(8, "big") + (10_000_000).to_bytes(8, "big") + bytes(8) + payload
    compressed = zlib.compress(body)
    return base64.b64encode(
        bytes.fromhex("1c849304") + len(compressed).to_bytes(4, "big") + compressed
    ).decode()


def _zigzag(count: int) -> int:
    return count << 1 if count >= 0 else (-count << 1) - 1


def test_places_are_times_and_empty_ones_are_left_out() -> None:
    assert decode(written(0, 2, -5, 1)) == {1: 2, 7: 1}


def test_counts_and_times_of_all_sizes_are_read() -> None:
    few = {1: 2, 7: 1, 999: 1, 2047: 1, 2049: 1, 5002: 1, 1234432: 1, 9998336: 1}
    assert decode(MANY) == {**few, 3: 10**12, 4: 1 << 62}


def test_nothing_was_counted() -> None:
    assert decode(EMPTY) == {}
    assert percentile({}, 50) == 0


def test_percentiles_are_those_of_the_nearest_rank() -> None:
    counts = dict.fromkeys(range(1, 1001), 1)
    assert [percentile(counts, percent) for percent in (50, 90, 99, 99.9, 100)] == [500, 900, 990, 999, 1000]


def test_what_was_counted_between_two() -> None:
    assert since({1: 5, 2: 3, 9: 1}, {1: 5, 2: 1}) == {2: 2, 9: 1}


@pytest.mark.parametrize(
    "text",
    ["", "x", "AAAA", "é", "HISTFAAA", EMPTY[:20], written(0, 2)[:-8] + "AAAAAAA=", "HISTFAAAAAB4nA=="],
)
def test_what_is_no_histogram_is_said_so(text: str) -> None:
    with pytest.raises(STLError, match="field 'hdrh' is no HdrHistogram"):
        decode(text)
