"""Emulated clients on several data threads: a namespace is on one, and requests are about all."""

from __future__ import annotations

from typing import Any

import pytest
from allosaur.server import LocalServer

VLANS = (0, 1, 2, 3)


@pytest.mark.parametrize("stateful", [False, True])
def test_clients_of_each_namespace_find_each_other(doors: Any, stateful: bool) -> None:
    with (
        LocalServer(emu=True, cores=2, stateful=stateful) as server,
        doors.Door(server.emu_port) as door,
    ):
        tunnels = [
            {port: door.add_namespace(port, tci=(vlan,) if vlan else (), arp={}, icmp={}) for port in (0, 1)}
            for vlan in VLANS
        ]
        for number, ports in enumerate(tunnels):
            first, second = 2 * number + 1, 2 * number + 2
            door.add_clients(ports[0], [first], arp={}, icmp={})
            door.add_clients(ports[1], [second], gateway=doors.ipv4(first), arp={}, icmp={})
        for number, ports in enumerate(tunnels):
            found = doors.await_it(
                lambda far=ports[1]: [
                    entry
                    for entry in door.call("arp_ns_iter", tun=far, reset=True, count=255)["data"]
                    if entry["resolve"]
                ],
                f"nobody answered in namespace {number}",
            )
            assert found[0]["mac"] == doors.mac(2 * number + 1)
            assert door.counters("arp_ns_cnt", tun=ports[0])["pktTxReply"] >= 1
        everything = [tunnel for ports in tunnels for tunnel in ports.values()]
        page = door.call("ctx_iter", reset=True, count=255)["data"]
        listed = {(item["vport"], item["tci"][0]) for item in page}
        assert len(page) == len(listed) == len(everything)
        infos = door.call("ctx_get_info", tunnels=everything)
        assert [info["active_clients"] for info in infos] == [1] * len(everything)
        assert door.counters("ctx_cnt", mask=["ctx"]) == {"addNs": 8, "activeNs": 8}
        with pytest.raises(doors.Refused, match="still has active clients"):
            door.call("ctx_remove", tunnels=everything)
        assert door.counters("ctx_cnt", mask=["ctx"])["activeNs"] == len(everything)
