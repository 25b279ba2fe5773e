"""Scenarios with the calls that TRex's own regression suites make, and what each of them must see."""

import struct
import time
from pathlib import Path

from scapy.layers.inet import TCP
from steps import PORTS, packet, refusal, wait_until
from trex.stl.api import (
    IP,
    UDP,
    Ether,
    STLClient,
    STLFlowLatencyStats,
    STLStream,
    STLTXCont,
    STLTXSingleBurst,
)

GAP_USEC = 1e6 / 50_000
"""As the suites compute it: a whole number that Python writes as 20.0."""


def reset(connect):
    """A client that has reset both ports."""
    client = connect("itay")
    client.reset(ports=PORTS)
    return client


def addressed(client, layer4, count):
    """Packets with the addresses of port 0, each from a port of its own."""
    ether = client.ports[0].get_layer_cfg()["ether"]
    headers = Ether(src=ether["src"], dst=ether["dst"]) / IP()
    return [bytes(headers / layer4(sport=number) / ("x" * 100)) for number in range(count)]


def pushed(connect):
    """Packets pushed with a fraction of zero in the gap, seen by filtered captures beside other traffic."""
    client = reset(connect)
    client.add_streams(STLStream(packet=packet(60), mode=STLTXCont(pps=100)), ports=[1])
    client.start(ports=[1])
    client.set_service_mode(ports=PORTS)
    words = "udp and src portrange 1-250"
    ids = [
        client.start_capture(tx_ports=0, bpf_filter=words)["id"],
        client.start_capture(rx_ports=1, bpf_filter=f"{words} or (vlan and {words})")["id"],
    ]
    client.clear_stats(ports=0)
    for layer4 in (UDP, TCP):
        client.push_packets(addressed(client, layer4, 500), ports=0, ipg_usec=GAP_USEC)
    wait_until(lambda: client.get_stats(ports=0)[0]["opackets"] >= 1000)
    status = client.get_capture_status()
    counts = [status[number]["count"] for number in ids]
    kept = []
    for number in ids:
        packets = []
        client.stop_capture(number, output=packets)
        kept.append({one["binary"] for one in packets} == set(addressed(client, UDP, 500)[1:251]))
    return {"counts": counts, "kept": kept}


def stopped_at_once(connect):
    """Captures that are stopped as soon as the packets were pushed."""
    client = reset(connect)
    client.set_service_mode(ports=PORTS)
    counts = []
    for _ in range(20):
        ids = [client.start_capture(tx_ports=0)["id"], client.start_capture(rx_ports=1)["id"]]
        client.push_packets(addressed(client, UDP, 20), ports=0)
        for number in ids:
            packets = []
            client.stop_capture(number, output=packets)
            counts.append(len(packets))
    return counts


def pauses(connect):
    """Streams are paused and updated one by one; bursts beside them forbid it, measured ones are left."""
    client = reset(connect)
    streams = [
        STLStream(mode=STLTXSingleBurst(pps=100, total_pkts=9999)),
        STLStream(mode=STLTXCont(pps=100)),
        STLStream(mode=STLTXCont(pps=100)),
        STLStream(mode=STLTXCont(pps=100), flow_stats=STLFlowLatencyStats(pg_id=1)),
    ]
    burst, _, changed, measured = client.add_streams(streams, ports=[0])
    client.start(ports=[0])
    seen = {
        "burst": refusal(client.pause_streams, port=0, stream_ids=[changed]),
        "ports": refusal(client.pause_streams, port=[0, 1], stream_ids=[changed]),
    }
    client.stop(ports=[0])
    client.remove_streams([burst], ports=[0])
    client.start(ports=[0], duration=60)
    seen["duration"] = refusal(client.pause_streams, port=0, stream_ids=[changed])
    client.stop(ports=[0])
    client.start(ports=[0])

    def sent():
        # The rate that the server's schedule has, by packets of a second of its clock.
        client.clear_stats()
        begun = time.monotonic()
        time.sleep(1)
        sent = client.get_stats()[0]["opackets"]
        return sent / (time.monotonic() - begun)

    client.update_streams(port=0, mult="10kpps", stream_ids=[changed, measured])
    seen["updated"] = sent()
    client.pause_streams(port=0, stream_ids=[changed])
    seen["paused"] = sent()
    client.resume_streams(port=0, stream_ids=[changed])
    seen["resumed"] = sent()
    return seen


def erf_file(path, interfaces):
    """A capture of Endace's format: a frame for each interface in the list, each with an FCS of zeros."""
    with Path(path).open("wb") as file:
        for number, interface in enumerate(interfaces):
            frame = bytes(Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=number) / (b"x" * 50))
            sizes = 18 + len(frame) + 4, 0, len(frame) + 4
            file.write(struct.pack("<Q", number << 20) + struct.pack(">BB3H2x", 2, 4 | interface, *sizes))
            file.write(frame + bytes(4))


def erf(connect, folder):
    """A capture that leaves by two ports, by the interfaces of its packets."""
    client = reset(connect)
    path = f"{folder}/dual.erf"
    erf_file(path, [2 if number % 25 < 13 else 3 for number in range(100)])
    client.clear_stats()
    client.push_remote(path, ports=[0], ipg_usec=100, is_dual=True)
    client.wait_on_traffic(ports=[0])
    stats = client.get_stats()
    return [[stats[port][name] for name in ("opackets", "obytes")] for port in PORTS]


def memory(connect):
    """What the setup of the receive tests reads of packet memory."""
    client = reset(connect)
    return client.get_util_stats()["mbuf_stats"]


def cores(connect):
    """Which data threads transmit on which ports, for each of the ways to choose them."""
    client = reset(connect)
    stream = STLStream(packet=packet(60), mode=STLTXCont())
    seen = {}

    def used():
        return [thread["ports"] for thread in client.get_util_stats()["cpu"]]

    def masked(name, streams):
        for port in PORTS:
            client.add_streams(streams[port], ports=[port])
        for mode in ("SPLIT", "PIN"):
            client.start(
                ports=PORTS,
                mult="100pps" if "latency" not in name else "3kpps",
                core_mask=getattr(STLClient, f"CORE_MASK_{mode}"),
            )
            seen[f"{name} {mode}"] = used()
            client.stop(ports=PORTS)
        client.remove_all_streams(ports=PORTS)

    masked("plain", [[stream], [stream]])
    measured = [
        STLStream(packet=packet(80), mode=STLTXCont(pps=100), flow_stats=STLFlowLatencyStats(pg_id=n))
        for n in (3, 4)
    ]
    masked("latency", [[stream, measured[0]], [stream, measured[1]]])

    def pinned(name, streams):
        client.add_streams(streams, ports=[0])
        client.start(ports=[0], mult="100pps", duration=30)
        seen[name] = used()
        client.stop(ports=[0])
        client.remove_all_streams(ports=[0])

    for core in (0, 1):
        pinned(f"single {core}", [STLStream(packet=packet(60), core_id=core)])
    pinned("two streams", [STLStream(packet=packet(60), core_id=1) for _ in range(2)])
    burst = STLTXSingleBurst(total_pkts=3)
    pinned(
        "loop of bursts",
        [
            STLStream(name="s1", packet=packet(60), mode=burst, core_id=1, next="s2"),
            STLStream(name="s2", packet=packet(60), mode=burst, core_id=1, next="s1", self_start=False),
        ],
    )
    seen["after"] = used()
    beyond = STLStream(packet=packet(60), core_id=2)
    seen["beyond"] = refusal(client.add_streams, beyond, ports=[0])
    return seen


SCENARIOS = (pushed, stopped_at_once, pauses, erf, memory, cores)
