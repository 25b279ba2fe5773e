"""TRex's official client with Linux nodes: its commands unchanged, real namespaces, real packets."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("networks_work")


def test_nodes_reach_each_other_and_are_gone_at_the_end(official: Any) -> None:
    seen = official("nodes")
    assert seen["pinged"]
    assert seen["pinged_ipv6"]
    assert seen["pinged_large"]
    assert not seen["pinged_other_vlan"]
    assert seen["pinged_vlan"]
    assert not seen["pinged_filtered"]
    assert seen["info"] == {
        "ether": {"src": "02:00:00:00:01:01"},
        "vlan": {"tags": [100, 200], "tpids": [0x88A8, 0x8100]},
        "ipv4": {"src": "192.0.2.1", "dst": "192.0.2.2"},
        "ipv6": {"enabled": True, "src": "2001:db8::1"},
        "linux-ns": "allosaur",
        "is-shared-ns": False,
        "linux-veth-internal": "eth0",
        "linux-veth-external": seen["info"]["linux-veth-external"],
        "bpf": "",
        "vlan_filter": 0,
        "is_bird": False,
    }
    assert {"rx_pkts", "tx_pkts", "rx_other_vlan", "rx_filtered"} <= set(seen["counted"])
    assert seen["cleared"] == {}
    assert seen["nodes"] == [["02:00:00:00:01:01"], ["02:00:00:00:02:01"]]
    assert seen["left"] == [[], []]
    assert seen["left_names"] == []


def test_nodes_share_a_namespace(official: Any) -> None:
    seen = official("shared_nodes")
    assert seen["pinged"]
    assert "has nodes (2)" in seen["has_nodes"]


def test_what_is_wrong_is_named(official: Any) -> None:
    seen = official("bad_nodes")
    assert "has a node 02:00:00:00:01:01 already" in seen["twice"]
    assert "give 1 to 4094" in seen["vlan"]
    assert "no node 02:00:00:00:02:01" in seen["unknown"]
    assert "no BIRD" in seen["bird"]
    assert "no shared namespace 'dut'" in seen["shared"]
    assert "'mtu' is 7" in seen["mtu"]
    assert "does not compile" in seen["filter"]
    assert "no_such_command" in seen["command"]
    assert "timeout" in seen["cancelled"]
    assert seen["progress"]["total_cmds"] == 200
