"""The high-level traffic API: its streams are those that TRex's client makes, and wrong arguments say so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLError, STLProfile, STLStream
from allosaur.api import IP, TCP, Ether, IPv6
from allosaur.hlt._arguments import DEFAULTS, ROWS
from trex.stl.trex_stl_hltapi import STLHltStream

UDP4 = {"l3_protocol": "ipv4", "l4_protocol": "udp"}
LONG = {"ip_src_addr": "16.0.0.1", "ip_dst_addr": "48.0.0.1", "udp_src_port": 1025, "udp_dst_port": 12}
#: What the recorded profiles give, one set a call.
RECORDED: dict[str, list[dict[str, Any]]] = {
    "hlt_david4": [
        {
            **{
                f"ip_{end}_{part}": value
                for end in ("src", "dst")
                for part, value in (("count", 10), ("mode", "increment"), ("step", "0.0.1.0"))
            },
            **{
                f"mac_{end}_{part}": value
                for end in ("src", "dst")
                for part, value in (("count", 10), ("mode", "increment"), ("step", 1))
            },
            "ip_dst_addr": "48.0.0.1",
            "ip_src_addr": "16.0.0.1",
            "l3_protocol": "ipv4",
            "vlan_id": "50 50",
            "vlan_id_count": "2 2",
            "vlan_id_step": "1 1",
            "vlan_id_mode": "increment fixed",
        }
    ],
    "hlt_imix_default": [{"length_mode": "imix", "rate_pps": 2, **UDP4}],
    "hlt_ipv6_default": [{"l3_protocol": "ipv6", "l3_length": 150, "l4_protocol": "udp"}],
    "hlt_ipv6_ranges": [
        {
            "l3_protocol": "ipv6",
            "l3_length": 150,
            "l4_protocol": "udp",
            "flow_stats_id": 23,
            "ipv6_src_addr": "1111:2222:3333:4444:5555:6666:7777:8888",
            "ipv6_dst_addr": "1111:1111:1111:1111:1111:1111:1111:1111",
            "ipv6_src_mode": "increment",
            "ipv6_src_step": 5,
            "ipv6_src_count": 10,
            "ipv6_dst_mode": "decrement",
            "ipv6_dst_step": "1111::11",
            "ipv6_dst_count": 150,
        }
    ],
    "hlt_udp_inc_dec_len_9k": [
        {"length_mode": mode, "frame_size_max": 9216, "rate_pps": 1, **UDP4, **LONG}
        for mode in ("increment", "decrement")
    ],
    "hlt_udp_ports": [
        {
            "udp_src_port_mode": "decrement",
            "udp_src_port_count": 45,
            "udp_src_port_step": 20,
            "udp_dst_port_mode": "increment",
            "udp_dst_port_count": 100,
            "udp_dst_port_step": 300,
            "udp_src_port": 123,
            "udp_dst_port": 65000,
            "rate_pps": 1000,
            **UDP4,
        }
    ],
    "hlt_vlan_default": [{"l2_encap": "ethernet_ii_vlan", "l3_protocol": "ipv4", "l4_protocol": "tcp"}],
    "hlt_vlans_vm": [
        {
            "frame_size": 100,
            "vlan_id": "1 2 1000 4 5",
            "vlan_id_step": 2,
            **UDP4,
            "vlan_id_mode": "increment fixed decrement random",
            "vlan_id_count": [4, 1, 10],
        }
    ],
    "hlt_wentong1": [
        {
            "ip_src_addr": "200.10.0.1",
            "ip_src_mode": "increment",
            "ip_src_step": "0.0.1.0",
            "ip_src_count": 1000,
            "ip_dst_addr": "190.1.0.1",
            "frame_size": 128,
            "rate_percent": 0.9,
            "vlan_id": 2,
            "vlan_id_mode": "increment",
            "vlan_id_step": 1,
            **UDP4,
            "mac_src": "0c00.1110.3101",
            "mac_dst": "588d.090d.7310",
        }
    ],
    "hlt_wentong2": [
        {
            "l3_protocol": "ipv6",
            "l4_protocol": "udp",
            "ipv6_next_header": 17,
            "l3_length": 200,
            "ipv6_src_addr": "2005:0:1::1",
            "ipv6_src_mode": "increment",
            "ipv6_src_count": 1,
            "ipv6_dst_addr": "2005:10:1::1",
            "ipv6_dst_step": "0:0:0:1:0:0:0:0",
            "rate_percent": 0.9,
            "vlan_id": 0,
            "vlan_id_mode": "increment",
            "vlan_id_step": 1,
            "mac_src": "0c00.1110.3101",
            "mac_dst": "0026.cb0c.6040",
        }
    ],
}


def streams(**arguments: Any) -> list[STLStream]:
    made = STLHltStream(**arguments)
    return made if isinstance(made, list) else [made]


def one(**arguments: Any) -> STLStream:
    (stream,) = streams(**arguments)
    return stream


def program(**arguments: Any) -> list[dict[str, Any]]:
    instructions: list[dict[str, Any]] = one(**arguments).to_json()["vm"]["instructions"]
    return instructions


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_its_streams_are_those_of_trex(name: str, recorded: Path) -> None:
    ours = STLProfile([stream for arguments in RECORDED[name] for stream in streams(**arguments)])
    theirs = json.loads((recorded / "golden-stateless" / f"{name}.json").read_text())["commands"]
    assert ours.to_commands(port_id=0) == theirs


def test_all_recorded_profiles_are_here(recorded: Path) -> None:
    assert {path.stem for path in (recorded / "golden-stateless").glob("hlt_*.json")} == set(RECORDED)


def test_every_import_name_is_the_same() -> None:
    names: dict[str, Any] = {}
    for module in ("trex.stl.trex_stl_hltapi", "trex_stl_lib.trex_stl_hltapi"):
        exec(f"from {module} import *", names)
        assert names["STLHltStream"] is STLHltStream
        assert names["traffic_config_kwargs"] == DEFAULTS
        assert "CTRexHltApi is not in Allosaur yet: " in repr(names["CTRexHltApi"])
    assert len(DEFAULTS) == 130


def test_text_is_as_good_as_numbers() -> None:
    """Tcl scripts have only text."""
    numbers = {"rate_pps": 5, "frame_size": 100, "ip_ttl": 9, "vlan_id": [7], "consistent_random": True}
    words = {"rate_pps": "5", "frame_size": "100", "ip_ttl": "9", "vlan_id": "{7}", "consistent_random": "1"}
    assert one(**numbers, **UDP4).to_json() == one(**words, **UDP4).to_json()
    assert one(**numbers, **UDP4).to_json()["random_seed"] == 1


@pytest.mark.parametrize(
    "mac", ["00-00-c0-a8-00-03", "00.00.c0.a8.00.03", "0000.c0a8.0003", "{00 00 c0 A8 0 3}"]
)
def test_forms_of_a_mac_address(mac: str) -> None:
    assert Ether(one(mac_src=mac).get_pkt()).src == "00:00:c0:a8:00:03"


def test_the_direction_exchanges_the_ends() -> None:
    there = {
        "mac_src": "2:0:0:0:0:1",
        "mac_dst": "2:0:0:0:0:2",
        "mac_src2": "2:0:0:0:0:3",
        "mac_dst2": "2:0:0:0:0:4",
    }
    ends = {
        "ip_src_addr": "16.0.0.1",
        "ip_dst_addr": "48.0.0.1",
        "ip_src_mode": "increment",
        "ip_src_count": 5,
    }
    back = one(direction=1, **there, **ends, **UDP4)
    packet = Ether(back.get_pkt())
    assert (packet.src[-1], packet.dst[-1], packet[IP].src, packet[IP].dst) == (
        "3",
        "4",
        "48.0.0.1",
        "16.0.0.1",
    )
    writes = [
        line["pkt_offset"]
        for line in back.to_json()["vm"]["instructions"]
        if line["type"] == "write_flow_var"
    ]
    assert writes == [30]


def test_the_port_gives_the_macs_that_are_ignored() -> None:
    stream = one(ignore_macs=True, mac_src_mode="increment", mac_src_count=5, **UDP4).to_json()
    assert stream["flags"] == 0
    assert not stream["vm"]["instructions"]


def test_an_imix_shares_the_rate_by_what_it_counts() -> None:
    two = {
        "length_mode": "imix",
        "l3_imix1_ratio": 1,
        "l3_imix1_size": 80,
        "l3_imix2_ratio": 1,
        "l3_imix2_size": 180,
    }
    two |= {"l3_imix3_ratio": 0, **UDP4}
    for rate, shares in (
        ("rate_pps", (50, 50)),
        ("rate_bps", (30.77, 69.23)),
        ("rate_percent", (33.33, 66.67)),
    ):
        made = streams(**two, **{rate: 100})
        assert [stream.mode.rate["value"] for stream in made] == pytest.approx(shares, abs=0.01)
        assert [stream.get_pkt_len() for stream in made] == [80, 180]


def test_modes_of_sending() -> None:
    burst = one(transmit_mode="single_burst", pkts_per_burst="7", rate_bps=1000).mode.to_json()
    assert burst == {"type": "single_burst", "total_pkts": 7, "rate": {"type": "bps_L2", "value": 1000.0}}
    bursts = one(
        transmit_mode="multi_burst", pkts_per_burst=2, burst_loop_count=3, inter_burst_gap=50
    ).mode.to_json()
    assert (bursts["pkts_per_burst"], bursts["count"], bursts["ibg"]) == (2, 3, 50)


def test_all_flags_of_tcp_are_sent() -> None:
    packet = Ether(one(l3_protocol="ipv4", l4_protocol="tcp", tcp_syn_flag=1, tcp_ack_flag="yes").get_pkt())
    assert str(packet[TCP].flags) == "SA"


@pytest.mark.parametrize(
    ("service", "tos"),
    [
        ({"ip_dscp": 10, "ip_cu": 1}, 41),
        ({"ip_precedence": 5, "ip_delay": 1, "ip_cost": 1}, 0b1011_0010),
        ({"ip_precedence": 5, "ip_tos_field": 3, "ip_mbz": 1}, 0b1010_0111),
        ({"ip_precedence": 5}, 0b1010_0000),
        ({}, 0),
    ],
)
def test_the_type_of_service(service: dict[str, int], tos: int) -> None:
    assert Ether(one(l3_protocol="ipv4", **service).get_pkt())[IP].tos == tos


def test_tags_have_their_own_protocol_and_priority() -> None:
    tagged = one(vlan_id="3 4", vlan_protocol_tag_id="88a8 0x8100", vlan_user_priority="5", vlan_cfi=0)
    assert tagged.get_pkt()[12:20].hex() == "88a8a00381003004"
    written = program(vlan_id=1, vlan_priority_mode="increment", vlan_priority_count=4)[-1]
    assert (written["mask"], written["shift"], written["pkt_offset"]) == (0xE000, 13, 14)


def test_opposite_ways_have_variables_of_their_own() -> None:
    """Two tags with the same pace, one up and one down, and two random ones."""
    lines = program(vlan_id="5 6", vlan_id_mode="increment decrement", vlan_id_count="3 3")
    assert [line.get("op") for line in lines[:2]] == ["inc", "dec"]
    assert lines[2]["name"] == lines[0]["name"] != lines[1]["name"] == lines[3]["name"]
    lines = program(vlan_id="5 6", vlan_id_mode="random random")
    assert len({line["name"] for line in lines}) == 2


def test_a_length_that_changes_is_in_every_header() -> None:
    lines = program(
        length_mode="random", l3_length_min=100, l3_length_max=200, l3_protocol="ipv6", l4_protocol="udp"
    )
    lengths = [(line["pkt_offset"], line["add_value"]) for line in lines if line["type"] == "write_flow_var"]
    assert lengths == [(18, -54), (58, -54)]
    assert not program(length_mode="random", frame_size_min=100, frame_size_max=100, **UDP4)


def test_a_stream_is_saved_when_asked(tmp_path: Path) -> None:
    made = streams(
        length_mode="imix", save_to_yaml=str(tmp_path / "a.yaml"), save_to_pcap=str(tmp_path / "a.pcap")
    )
    loaded = [
        STLProfile.load(tmp_path / f"a_imix{number}.yaml").to_json()[0]["packet"] for number in (1, 2, 3)
    ]
    assert loaded == [stream.to_json()["packet"] for stream in made]
    assert (tmp_path / "a.pcap").exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"frame_sise": 64}, "'frame_sise' is not an argument of STLHltStream: .*did you mean frame_size?"),
        ({"rate_pps": 1, "rate_bps": 1}, "rate_pps, rate_bps: a stream has one rate"),
        ({"rate_percent": 101}, "'rate_percent' cannot be 101: give a number above 0 and at most 100"),
        ({"rate_pps": "fast"}, "'rate_pps' cannot be 'fast': give a number above 0"),
        ({"transmit_mode": "forever"}, "'transmit_mode' cannot be 'forever': give one of .*multi_burst"),
        ({"length_mode": "long"}, "'length_mode' cannot be 'long': give one of .*decrement"),
        ({"mac_src": "0:1"}, "'mac_src' cannot be '0:1': give a MAC address: 01:23"),
        ({"mac_dst_mode": "discovery"}, "'mac_dst_mode' cannot be 'discovery': give one of .*increment"),
        ({"l3_protocol": "arp"}, "'l3_protocol' cannot be 'arp': give one of .*ipv6"),
        ({"l4_protocol": "udp"}, "'l4_protocol' is 'udp': give l3_protocol, too"),
        ({"ip_src_addr": "1.2.3"}, "'ip_src_addr' cannot be '1.2.3': give an IPv4 address"),
        ({"ipv6_src_addr": "1.2.3.4"}, "'ipv6_src_addr' cannot be '1.2.3.4': give an IPv6 address"),
        ({"ip_src_step": "x"}, "'ip_src_step' cannot be 'x': give a number from 1"),
        ({"ip_dscp": 1, "ip_delay": 1, **UDP4}, "ip_delay, ip_dscp say the type of service in two ways"),
        ({"ip_ttl": 256}, "'ip_ttl' cannot be 256: give a whole number from 0 to 255"),
        ({"vlan_id": "1 4096"}, "'vlan_id' cannot be '4096': give a whole number from 0 to 4095"),
        ({"vlan_protocol_tag_id": "800"}, "'vlan_protocol_tag_id' cannot be '800': give one of 0x8100"),
        ({"frame_size": 40, **UDP4}, "'frame_size' cannot be 40: the headers alone need 46 bytes"),
        ({"length_mode": "random", "frame_size_min": 47}, "'frame_size_min' cannot be 47: give at least 48"),
        (
            {"length_mode": "random", "frame_size_min": 99},
            "'frame_size_min' cannot be 99: 'frame_size_max' is 64",
        ),
        ({"length_mode": "imix", **{f"l3_imix{n}_ratio": 0 for n in (1, 2, 3)}}, "l3_imix4_ratio' are all 0"),
        ({"split_by_cores": "single"}, "'split_by_cores' cannot be 'single': give one of .*duplicate"),
        ({"tcp_syn_flag": "maybe"}, "'tcp_syn_flag' cannot be 'maybe': give True or False"),
        ({"load_profile": "a.py"}, r"'load_profile' is not for a stream: load it by STLProfile.load\(\)"),
    ],
)
def test_wrong_arguments(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(STLError, match=words):
        STLHltStream(**wrong)


@pytest.mark.parametrize(
    ("pace", "words"),
    [
        ({"count": 0}, "'udp_src_port_count' cannot be 0: give 1 or more"),
        ({"step": 0}, "'udp_src_port_step' is 0 in the lowest 32 bits"),
        ({"step": 60000}, "'udp_src_port_count' and 'udp_src_port_step': 2 values 60000 apart"),
    ],
)
def test_wrong_paces(pace: dict[str, int], words: str) -> None:
    given = {f"udp_src_port_{name}": value for name, value in {"count": 2, **pace}.items()}
    with pytest.raises(STLError, match=words):
        STLHltStream(**UDP4, **given)


def test_every_default_is_a_good_value() -> None:
    for name, row in ROWS.items():
        if row.default is not None and name not in ("rate_percent", "load_profile"):
            assert STLHltStream(**{name: row.default}), name
    packet = Ether(one(l3_protocol="ipv6").get_pkt())
    assert (packet[IPv6].src, re.sub(r"\W", "", packet.dst)) == ("fe80::12", "0" * 12)
