"""Every instruction of the field engine as TRex's official client sends it: what arrives, byte by byte."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Callable
from itertools import cycle, islice
from typing import Any, NamedTuple

import pytest

PACKETS = 12


class Arrived(NamedTuple):
    """What a captured packet says; the source and destination are of IPv4."""

    frame: bytes

    @property
    def source(self) -> str:
        return str(ipaddress.ip_address(self.frame[26:30]))

    @property
    def destination(self) -> str:
        return str(ipaddress.ip_address(self.frame[30:34]))

    @property
    def ports(self) -> tuple[int, int]:
        return number(self.frame[34:36]), number(self.frame[36:38])


def number(field: bytes) -> int:
    return int.from_bytes(field, "big")


def ones_complement_sum(data: bytes) -> int:
    """RFC 1071: 0xFFFF over what carries its own right checksum."""
    total = sum(number((data + b"\0")[at : at + 2]) for at in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@pytest.fixture(scope="module")
def arrived(official: Any) -> dict[str, list[Arrived]]:
    """The packets of each program, in order."""
    seen = official("instructions")
    return {name: [Arrived(base64.b64decode(packet)) for packet in packets] for name, packets in seen.items()}


def repeated(*values: Any) -> list[Any]:
    return list(islice(cycle(values), PACKETS))


SOURCE_PORTS = {
    "inc": repeated(1008, 1010, 1000, 1002, 1004, 1006),
    "dec": repeated(1001, 1000, 1003, 1002),
    "value_list": repeated(5, 9, 7),
    # The template's source port is 1025, 0x401: only the four bits of the mask change.
    "write_mask": [(step << 8) | 0x01 for step in range(PACKETS)],
    # Of a variable of eight bytes, what is written in network order is its upper half.
    "write_mask_wide": repeated(1001, 1002, 1003),
    "tuple": repeated(2000, 2000, 2001, 2001, 2002, 2002),
    "cache": [1000 + n for n in range(PACKETS)],
}


@pytest.mark.parametrize("name", SOURCE_PORTS)
def test_source_ports_are_what_the_instruction_makes(arrived: dict[str, list[Arrived]], name: str) -> None:
    assert [packet.ports[0] for packet in arrived[name]] == SOURCE_PORTS[name]
    assert {packet.ports[1] for packet in arrived[name]} == {12}


OTHER_FIELDS: dict[str, tuple[Callable[[Arrived], Any], list[Any]]] = {
    "next_var": (lambda packet: packet.ports, repeated(*[(v, w) for w in (100, 101) for v in (1, 2, 3)])),
    "write": (
        lambda packet: (packet.source, packet.destination),
        repeated(*[(f"16.0.0.{n + 10}", f"{n}.0.0.16") for n in range(1, 6)]),
    ),
    "tuple": (lambda packet: packet.source, repeated("16.0.0.1", "16.0.0.2")),
    "trim": (lambda packet: len(packet.frame), repeated(64, 66, 68)),
    "icmpv6": (lambda packet: number(packet.frame[60:62]), repeated(1, 2, 3, 4)),
    "constant": (lambda packet: packet.frame[42:], [b"y" * 20] * PACKETS),
}


@pytest.mark.parametrize("name", OTHER_FIELDS)
def test_other_fields_are_what_the_instruction_makes(arrived: dict[str, list[Arrived]], name: str) -> None:
    field, expected = OTHER_FIELDS[name]
    assert [field(packet) for packet in arrived[name]] == expected


def test_random_values_are_in_their_range_and_repeat_after_the_limit(
    arrived: dict[str, list[Arrived]],
) -> None:
    free = [packet.ports[0] for packet in arrived["random"]]
    assert set(free) <= {1000, 1001, 1002, 1003}
    assert len(set(free)) > 1
    limited = [packet.ports[0] for packet in arrived["rand_limit"]]
    assert limited == repeated(*limited[:3])
    assert len(set(limited)) == 3
    assert all(1000 <= value <= 60000 for value in limited)


WITHOUT_CHECKSUM_UDP = {"write", "trim", "icmpv6"}
"""Programs that leave the checksum of UDP as it was, or have none."""


def test_checksums_are_right_in_every_packet(arrived: dict[str, list[Arrived]]) -> None:
    for name, packets in arrived.items():
        assert len(packets) == PACKETS, name
        for packet in packets:
            frame = packet.frame
            if name == "icmpv6":
                pseudo = frame[22:54] + (len(frame) - 54).to_bytes(4, "big") + (58).to_bytes(4, "big")
                assert ones_complement_sum(pseudo + frame[54:]) == 0xFFFF
                continue
            assert ones_complement_sum(frame[14:34]) == 0xFFFF, name
            if name not in WITHOUT_CHECKSUM_UDP:
                pseudo = frame[26:34] + (17).to_bytes(2, "big") + frame[38:40]
                assert ones_complement_sum(pseudo + frame[34:]) == 0xFFFF, name
