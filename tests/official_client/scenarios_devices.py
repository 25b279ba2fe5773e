"""Scenarios of TRex's official client with a device between the ports. See session.py."""

# ruff: noqa: I001  # the order of imports matters here
from trex.stl.api import (
    IP,
    TCP,
    UDP,
    Ether,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLStream,
    STLTXSingleBurst,
)
from steps import PORTS, WAIT_SECONDS, settled_stats


def padded(packet, size=100):
    return STLPktBuilder(pkt=packet / bytes(size - len(packet)))


def nat(connect):
    """From inside out through a NAT, and from outside to a port that it forwards. ARP finds the gateways."""
    client = connect("itay")
    client.reset(ports=PORTS)
    client.set_service_mode(ports=PORTS)
    for port in PORTS:
        client.set_l3_mode(port=port, src_ipv4=f"10.0.{port}.2", dst_ipv4=f"10.0.{port}.1")
    gateways = [client.get_port_attr(port)["arp"] for port in PORTS]
    client.ping_ip(src_port=0, dst_ip="10.0.0.1", count=1)
    client.set_service_mode(ports=PORTS, enabled=False)
    burst, probe = STLTXSingleBurst(total_pkts=2000, pps=4000), STLTXSingleBurst(total_pkts=500, pps=1000)
    out = Ether() / IP(src="10.0.0.2", dst="10.0.1.2")
    back = Ether() / IP(src="10.0.1.2", dst="10.0.1.1") / UDP(sport=5000, dport=8080)
    streams = {
        0: [
            STLStream(packet=padded(out / UDP(sport=1, dport=9)), mode=burst, flow_stats=STLFlowStats(1)),
            STLStream(packet=padded(out / TCP(sport=2, dport=9)), mode=burst, flow_stats=STLFlowStats(2)),
            STLStream(
                packet=padded(out / UDP(sport=3, dport=9)), mode=probe, flow_stats=STLFlowLatencyStats(3)
            ),
        ],
        1: [STLStream(packet=padded(back), mode=burst, flow_stats=STLFlowStats(4))],
    }
    for port in PORTS:
        client.add_streams(streams[port], ports=[port])
    client.clear_stats()
    client.start(ports=PORTS)
    client.wait_on_traffic(ports=PORTS, timeout=WAIT_SECONDS)
    stats = settled_stats(client)
    latency = stats["latency"][3]
    return {
        "gateways": gateways,
        "groups": {
            pg_id: [
                stats["flow_stats"][pg_id][way][port] for way, port in (("tx_pkts", here), ("rx_pkts", there))
            ]
            for pg_id, here, there in ((1, 0, 1), (2, 0, 1), (3, 0, 1), (4, 1, 0))
        },
        "errors": sum(latency["err_cntrs"].values()),
        "highest": latency["latency"]["total_max"],
    }


SCENARIOS = (nat,)
