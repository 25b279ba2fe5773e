"""The counters that the kernel and drivers have of ports, beside ours."""

from __future__ import annotations

from typing import Any

from allosaur import STLPktBuilder, STLStream, STLTXSingleBurst
from allosaur.server import LocalServer
from scapy.all import IP, UDP, Ether


def test_ports_of_all_kinds_have_the_same_names(network: Any) -> None:
    far = network.namespace("far")
    near, _ = network.veth(far)
    with LocalServer(ports=[near, "memory"]) as server, server.client() as client:
        client.reset()
        packet = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP() / bytes(100)
        mode = STLTXSingleBurst(total_pkts=1_234, pps=10_000)
        client.add_streams([STLStream(packet=STLPktBuilder(pkt=packet), mode=mode)], ports=[0, 1])
        before, _ = network.sent(None, near)
        client.start(ports=[0, 1])
        client.wait_on_traffic(ports=[0, 1])
        on_veth, in_memory = client.get_xstats(0), client.get_xstats(1)
        assert list(on_veth) == list(in_memory)
        assert on_veth["tx_good_packets"] == in_memory["tx_good_packets"] == 1_234
        assert on_veth["kernel_tx_packets"] - before == 1_234
        assert in_memory["kernel_tx_packets"] == 0


def test_devices_of_dpdk_tell_what_their_drivers_count(dpdk: None) -> None:
    with LocalServer(ports=["vdev:net_ring", "memory"]) as server, server.client() as client:
        client.reset()
        packet = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP() / bytes(100)
        mode = STLTXSingleBurst(total_pkts=500, pps=10_000)
        client.add_streams([STLStream(packet=STLPktBuilder(pkt=packet), mode=mode)], ports=[0])
        client.start(ports=[0], force=True)
        client.wait_on_traffic(ports=[0])
        counters = client.get_xstats(0)
        assert counters["tx_good_packets"] == counters["tx_q0_packets"] == 500
        assert list(counters) == list(client.get_xstats(1))
        assert client.get_xstats(1)["tx_q0_packets"] == 0
