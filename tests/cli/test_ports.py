"""`allosaur ports`: what this machine has, and the commands that prepare it, none of which is run."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("binary")


def test_the_list_fits_a_terminal(allosaur: Any) -> None:
    listed = allosaur("ports")
    assert listed.code == 0, listed
    assert "DPDK:" in listed.out
    assert "allosaur ports prepare" in listed.out
    assert [line for line in listed.out.splitlines() if len(line) > 80] == []
    assert listed.err == ""


def test_json_is_one_object_with_what_is_known(allosaur: Any) -> None:
    found = allosaur("ports", "--json").json()
    assert (found["command"], found["ok"]) == ("ports", True)
    assert isinstance(found["dpdk"]["built"], bool)
    assert found["dpdk"]["hugepages"]["needed_mib"] > 0
    for device in found["devices"]:
        assert device["interface"] or device["pci"], device
        assert {"kind", "port", "ready", "remedy"} <= set(device["ports"][0]) if device["ports"] else True


def test_what_is_not_there_is_refused(allosaur: Any) -> None:
    allosaur("ports", "prepare", "no-such-one").refused("'no-such-one'", "allosaur ports")
    allosaur("ports", "prepare", "0000:ff:1f.7").refused("0000:ff:1f.7", "allosaur ports")
    allosaur("ports", "prepare", "eth0", "--driver", "e1000").refused("--driver 'e1000'", "vfio-pci")
    allosaur("ports", "prepare", "--", "-x").refused("'-x'")
    allosaur("ports", "prepare").refused("NAME")
    allosaur("ports", "list").refused("prepare")
