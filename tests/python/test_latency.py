"""Latency that the real server measures: nothing is shorter than the link, and all is told.

How long it may be at most is a matter of the machine: `bench/latency.py` measures that.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLClient, STLFlowLatencyStats, STLPktBuilder, STLStream, STLTXSingleBurst
from allosaur.api import IP, UDP, Ether
from allosaur.client._hdrh import decode
from allosaur.server import LocalServer

PG_ID = 5
PACKETS = 300


def measured(client: STLClient) -> dict[str, Any]:
    """Send a burst; its group's numbers when all has arrived."""
    client.clear_stats()
    client.start(ports=[0], force=True)
    client.wait_on_traffic(timeout=30)
    deadline = time.monotonic() + 10
    while True:
        stats = client.get_stats()
        if stats["flow_stats"][PG_ID]["rx_pkts"]["total"] == PACKETS:
            group: dict[str, Any] = stats["latency"][PG_ID]
            return group
        assert time.monotonic() < deadline, stats["flow_stats"]


@pytest.mark.parametrize("poll", ["busy", "adaptive"])
@pytest.mark.parametrize("delay_usec", [0, 1000])
def test_no_packet_is_faster_than_the_link(binary: Path, poll: str, delay_usec: int) -> None:
    ports = [f"memory:delay={delay_usec}us"] * 2
    packet = STLPktBuilder(pkt=Ether() / IP() / UDP() / bytes(18))
    burst = STLTXSingleBurst(total_pkts=PACKETS, pps=1000)
    stream = STLStream(packet=packet, mode=burst, flow_stats=STLFlowLatencyStats(PG_ID))
    with LocalServer(ports, binary=binary, options=["--poll", poll]) as server, server.client() as client:
        client.reset()
        client.add_streams(stream, ports=[0])
        # The second run shows only its own packets.
        for run in (1, 2):
            group = measured(client)
            latency = group["latency"]
            assert set(group["err_cntrs"].values()) == {0}
            assert delay_usec <= latency["total_min"] <= latency["average"] <= latency["total_max"] + 1
            percentiles = [latency[name] for name in ("p50", "p90", "p99", "p99_9")]
            assert percentiles == sorted(percentiles)
            assert delay_usec <= percentiles[0]
            assert sum(latency["histogram"].values()) == PACKETS
            assert min(latency["histogram"]) >= delay_usec
            assert isinstance(latency["jitter"], int)
            assert latency["jitter"] >= 0
            whole = decode(latency["hdrh"])
            assert sum(whole.values()) == run * PACKETS
            assert min(whole) >= delay_usec
