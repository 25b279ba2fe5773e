"""All arguments of a stream of the high-level traffic API: one row each, with its default and what it may be.

Lengths are in bytes: those of ``frame_size*`` and ``l3_imix*`` are of whole frames with FCS, those of
``l3_length*`` begin at the IP header. Gaps are in microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._errors import STLError
from ..streams._tunable_names import did_you_mean
from ._values import (
    Reader,
    anything,
    as_given,
    flag,
    ipv4,
    ipv6,
    mac,
    one_of,
    real,
    several,
    step,
    tag_protocol,
    whole,
)

#: The largest frame, in bytes with FCS.
FRAME_BYTES_MAX = 9242
#: The arguments that say how fast, each with the name that the rate of a stream has.
RATES = {"rate_pps": "pps", "rate_bps": "bps_L2", "rate_percent": "percentage"}
#: How many sizes ``length_mode="imix"`` has.
IMIX_SIZES = 4

_BIT, _BYTE, _WORD, _LONG = whole(0, 1), whole(0, 0xFF), whole(0, 0xFFFF), whole(0, 0xFFFF_FFFF)
_CHANGE = one_of("fixed", "increment", "decrement", "random")
_FRAME = whole(1, FRAME_BYTES_MAX)


@dataclass(frozen=True)
class Row:
    """An argument: what it is when not given, and who reads it. A default of None is left as it is."""

    default: Any
    read: Reader


def _changing(name: str, mode: str, read_step: Reader) -> dict[str, Row]:
    """The three arguments of a field that may differ from packet to packet."""
    return {
        f"{name}_mode": Row(mode, _CHANGE),
        f"{name}_step": Row(1, read_step),
        f"{name}_count": Row(1, _LONG),
    }


_TRAFFIC: dict[str, Row] = {
    # What a command to a server has beside the stream; a stream by itself does not use these.
    **{name: Row(None, anything) for name in ("mode", "port_handle", "port_handle2", "stream_id", "name")},
    "bidirectional": Row(False, flag),
    "load_profile": Row(None, anything),
    # Where a stream is written to when it is made: paths of files.
    "save_to_yaml": Row(None, anything),
    "save_to_pcap": Row(None, anything),
    "split_by_cores": Row("split", one_of("split", "duplicate")),
    "consistent_random": Row(False, flag),
    "ignore_macs": Row(False, flag),
    "disable_flow_stats": Row(False, flag),
    "flow_stats_id": Row(None, _LONG),
    "pg_id": Row(None, _LONG),
    "direction": Row(0, _BIT),
    "transmit_mode": Row("continuous", one_of("continuous", "multi_burst", "single_burst")),
    "rate_pps": Row(None, real(0, above=True)),
    "rate_bps": Row(None, real(0, above=True)),
    "rate_percent": Row(10, real(0, 100, above=True)),
    "pkts_per_burst": Row(1, whole(1, 0xFFFF_FFFF)),
    "burst_loop_count": Row(1, whole(1, 0xFFFF_FFFF)),
    "inter_burst_gap": Row(12, as_given(real(0))),
}

_LENGTHS: dict[str, Row] = {
    "length_mode": Row("fixed", one_of("auto", "fixed", "increment", "decrement", "random", "imix")),
    **{
        f"l3_imix{number}_size": Row(size, whole(32, FRAME_BYTES_MAX))
        for number, size in enumerate((64, 570, 1518, 9230), start=1)
    },
    **{f"l3_imix{number}_ratio": Row(share, real(0)) for number, share in enumerate((7, 4, 1, 0), start=1)},
    **{name: Row(64, _FRAME) for name in ("frame_size", "frame_size_min", "frame_size_max")},
    "frame_size_step": Row(1, whole(1, 0xFFFF)),
    "l3_length": Row(None, _FRAME),
    "l3_length_min": Row(110, _FRAME),
    "l3_length_max": Row(238, _FRAME),
    "l3_length_step": Row(1, whole(1, 0xFFFF)),
}

_LAYER_2: dict[str, Row] = {
    "l2_encap": Row("ethernet_ii", one_of("ethernet_ii", "ethernet_ii_vlan")),
    **{name: Row("00:00:01:00:00:01", mac) for name in ("mac_src", "mac_src2")},
    **{name: Row("00:00:00:00:00:00", mac) for name in ("mac_dst", "mac_dst2")},
    **_changing("mac_src", "fixed", step("mac")),
    **_changing("mac_dst", "fixed", step("mac")),
    **_changing("mac_src2", "fixed", step("mac")),
    **_changing("mac_dst2", "fixed", step("mac")),
}

#: One value for each tag; those that are missing are the default.
TAGS: dict[str, Row] = {
    "vlan_user_priority": Row(1, whole(0, 7)),
    **_changing("vlan_priority", "fixed", _LONG),
    "vlan_id": Row(0, whole(0, 4095)),
    **_changing("vlan_id", "fixed", _LONG),
    "vlan_cfi": Row(1, _BIT),
    "vlan_protocol_tag_id": Row(None, tag_protocol),
}

_LAYER_3: dict[str, Row] = {
    "l3_protocol": Row(None, one_of("ipv4", "ipv6")),
    "ip_precedence": Row(0, whole(0, 7)),
    "ip_tos_field": Row(0, whole(0, 15)),
    **{
        f"ip_{name}": Row(0, _BIT)
        for name in ("mbz", "delay", "throughput", "reliability", "cost", "reserved")
    },
    "ip_dscp": Row(0, whole(0, 63)),
    "ip_cu": Row(0, whole(0, 3)),
    "ip_id": Row(0, _WORD),
    "ip_fragment_offset": Row(0, whole(0, 8191)),
    "ip_ttl": Row(64, _BYTE),
    "ip_checksum": Row(None, _WORD),
    "ip_src_addr": Row("0.0.0.0", ipv4),
    "ip_dst_addr": Row("192.0.0.1", ipv4),
    **_changing("ip_src", "fixed", step("ipv4")),
    **_changing("ip_dst", "fixed", step("ipv4")),
    "ipv6_traffic_class": Row(0, _BYTE),
    "ipv6_flow_label": Row(0, whole(0, 0xFFFFF)),
    "ipv6_length": Row(None, _WORD),
    "ipv6_next_header": Row(None, _BYTE),
    "ipv6_hop_limit": Row(64, _BYTE),
    "ipv6_src_addr": Row("fe80:0:0:0:0:0:0:12", ipv6),
    "ipv6_dst_addr": Row("fe80:0:0:0:0:0:0:22", ipv6),
    **_changing("ipv6_src", "fixed", step("ipv6")),
    **_changing("ipv6_dst", "fixed", step("ipv6")),
}

_LAYER_4: dict[str, Row] = {
    "l4_protocol": Row(None, one_of("tcp", "udp")),
    **{f"{kind}_src_port": Row(1024, _WORD) for kind in ("tcp", "udp")},
    **{f"{kind}_dst_port": Row(80, _WORD) for kind in ("tcp", "udp")},
    "tcp_seq_num": Row(1, _LONG),
    "tcp_ack_num": Row(1, _LONG),
    "tcp_data_offset": Row(5, whole(0, 15)),
    **{f"tcp_{name}_flag": Row(0, flag) for name in ("fin", "syn", "rst", "psh", "ack", "urg")},
    "tcp_window": Row(4069, _WORD),
    "tcp_checksum": Row(None, _WORD),
    "tcp_urgent_ptr": Row(0, _WORD),
    "udp_length": Row(None, _WORD),
    **_changing("tcp_src_port", "increment", _WORD),
    **_changing("tcp_dst_port", "increment", _WORD),
    **_changing("udp_src_port", "increment", _WORD),
    **_changing("udp_dst_port", "increment", _WORD),
}

ROWS: dict[str, Row] = {
    **_TRAFFIC,
    **_LENGTHS,
    **_LAYER_2,
    **{name: Row(row.default, several(row.read)) for name, row in TAGS.items()},
    **_LAYER_3,
    **_LAYER_4,
}

#: Each argument of ``traffic_config`` with its default.
DEFAULTS: dict[str, Any] = {
    name: row.default for name, row in ROWS.items() if name not in ("save_to_yaml", "save_to_pcap", "pg_id")
}


@dataclass(frozen=True)
class Settings:
    """The values of all arguments, and the names of those that the caller gave."""

    values: Mapping[str, Any]
    given: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def but(self, **changed: Any) -> Settings:
        """The same with some values changed, as if the caller had given them so."""
        return Settings({**self.values, **changed}, self.given | changed.keys())


def read(arguments: Mapping[str, Any]) -> Settings:
    """The settings of a call; an argument that is None counts as not given. Raises ``STLError``."""
    for name in arguments:
        if name not in ROWS:
            raise STLError(
                f"'{name}' is not an argument of STLHltStream: leave it out{did_you_mean(name, ROWS)}"
            )
    given = {name: value for name, value in arguments.items() if value is not None}
    if given.get("load_profile") is not None:
        raise STLError("argument 'load_profile' is not for a stream: load it by STLProfile.load()")
    rates = [name for name in RATES if name in given]
    if len(rates) > 1:
        raise STLError(f"arguments {', '.join(rates)}: a stream has one rate, give one of them")
    values = {}
    for name, row in ROWS.items():
        value = given.get(name, row.default)
        values[name] = row.read(name, value) if value is not None or name in TAGS else None
    return Settings(values, frozenset(given))
