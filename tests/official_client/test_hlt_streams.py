"""The high-level traffic API: for the same arguments our streams are those of TRex's official client."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from trex.stl.trex_stl_hltapi import STLHltStream

SCRIPT = Path(__file__).resolve().parent / "hlt_streams.py"
IP4: dict[str, Any] = {"l3_protocol": "ipv4"}
IP6: dict[str, Any] = {"l3_protocol": "ipv6", "frame_size": 120}
UDP: dict[str, Any] = {"l4_protocol": "udp"}
TCP: dict[str, Any] = {"l4_protocol": "tcp"}


def changing(name: str, **more: Any) -> list[dict[str, Any]]:
    """A field that goes up, goes down, and is random."""
    return [
        {f"{name}_mode": mode, f"{name}_count": 7, f"{name}_step": 3, **more}
        for mode in ("increment", "decrement", "random")
    ]


ENDS = {
    "mac_src": "02:00:00:00:00:01",
    "mac_dst": "0200.0000.0002",
    "mac_src2": "02-00-00-00-00-03",
    "mac_dst2": "{02 00 00 00 00 04}",
}
ARGUMENTS: list[dict[str, Any]] = [
    {},
    IP4 | {"direction": 1},
    *(IP4 | UDP | ENDS | {"direction": direction} for direction in (0, 1)),
    *(changed for end in ("src", "dst") for changed in changing(f"mac_{end}", **ENDS)),
    *(changed for end in ("src", "dst") for changed in changing(f"ip_{end}", **IP4)),
    *(changed for end in ("src", "dst") for changed in changing(f"ipv6_{end}", **IP6)),
    *(changed for end in ("src", "dst") for changed in changing(f"tcp_{end}_port", **IP4, **TCP)),
    *(changed for end in ("src", "dst") for changed in changing(f"udp_{end}_port", **IP6, **UDP)),
    IP4 | {"ip_src_mode": "increment", "ip_src_step": "0.1.0.0", "ip_src_count": 9, "direction": 1},
    IP6 | {"ipv6_dst_mode": "increment", "ipv6_dst_step": "::5", "ipv6_dst_count": 9, "direction": 1},
    {"mac_src_mode": "increment", "mac_src_step": "00:00:00:00:01:00", "mac_src_count": 4},
    IP6
    | TCP
    | {"vlan_id": [1, 2, 3, 4], "vlan_protocol_tag_id": "8100 0x88a8", "vlan_user_priority": "4 3 2"},
    {"vlan_id": "9 10", "vlan_id_mode": "increment decrement", "vlan_id_count": "3 4", "vlan_cfi": 0},
    {"vlan_id": 100, "vlan_id_mode": "random", **IP4},
    IP4 | UDP | {"length_mode": "increment", "frame_size_min": 100, "frame_size_max": 3000},
    IP4 | UDP | {"length_mode": "random", "frame_size_max": 9000},
    IP4 | TCP | {"length_mode": "decrement", "l3_length_min": 100, "l3_length_max": 200, "vlan_id": 5},
    IP4 | {"length_mode": "auto"},
    IP4 | {"l3_length": 474, "vlan_id": "200 100"},
    IP4 | {"l3_length": 474, "frame_size": 99},
    *(IP4 | UDP | {"length_mode": "imix", rate: 10} for rate in ("rate_pps", "rate_bps", "rate_percent")),
    IP4 | {"transmit_mode": "single_burst", "pkts_per_burst": 9, "rate_bps": 1000},
    IP4 | {"transmit_mode": "multi_burst", "burst_loop_count": 9, "inter_burst_gap": 5, "rate_pps": 3},
    IP4 | {"ip_dscp": 10, "ip_cu": 1, "ip_id": 5, "ip_fragment_offset": 7, "ip_ttl": 3},
    IP4 | {"ip_precedence": 5, "ip_delay": 1, "ip_reliability": 1},
    IP4 | {"ip_precedence": 5, "ip_tos_field": 9, "ip_mbz": 1},
    IP4 | {"ip_checksum": 0x1234, "ip_src_mode": "increment", "ip_src_count": 5},
    IP6 | {"ipv6_traffic_class": 3, "ipv6_flow_label": 99, "ipv6_hop_limit": 1, "ipv6_next_header": 59},
    IP4 | TCP | {"tcp_syn_flag": 1, "tcp_window": 9, "tcp_seq_num": 77, "tcp_urgent_ptr": 4},
    IP4 | UDP | {"udp_length": 8, "flow_stats_id": 5, "consistent_random": "yes"},
    IP4 | UDP | {"flow_stats_id": 5, "disable_flow_stats": True, "ignore_macs": True},
    {"flow_stats_id": 5},
]


def ours(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    streams = STLHltStream(**arguments)
    return [stream.to_json() for stream in (streams if isinstance(streams, list) else [streams])]


@pytest.fixture(scope="module")
def theirs(client_python: str, client_environment: dict[str, str]) -> list[list[dict[str, Any]]]:
    command = [client_python, "-W", "ignore", str(SCRIPT)]
    asked = json.dumps(ARGUMENTS)
    done = subprocess.run(
        command, input=asked, capture_output=True, text=True, timeout=110, check=False, env=client_environment
    )
    assert done.returncode == 0, f"the official client failed:\n{done.stdout}\n{done.stderr}"
    made: list[list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return made


def in_hex(streams: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the bytes of packets to be read."""
    return [{**stream, "packet": base64.b64decode(stream["packet"]["binary"]).hex(" ")} for stream in streams]


@pytest.mark.parametrize("number", range(len(ARGUMENTS)))
def test_our_streams_are_theirs(number: int, theirs: list[list[dict[str, Any]]]) -> None:
    made, wanted = in_hex(ours(ARGUMENTS[number])), in_hex(theirs[number])
    assert made == wanted, ARGUMENTS[number]
    # As it goes over the wire: 12 is not 12.0 there.
    assert json.dumps(made, sort_keys=True) == json.dumps(wanted, sort_keys=True), ARGUMENTS[number]
