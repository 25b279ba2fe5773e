"""All packet groups at once: each packet is counted, in its own group and on its port."""

from __future__ import annotations

import time
from typing import Any

from allosaur import (
    STLClient,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLStream,
    STLTXCont,
)
from allosaur.api import IP, UDP, Ether
from allosaur.client._hdrh import decode
from allosaur.server import LocalServer

COUNTED, MEASURED = 1023, 128
TOTAL_PPS = 1_000_000
MEASURED_PPS = 100
DURATION_S = 2.0


def streams() -> list[STLStream]:
    packet = STLPktBuilder(pkt=Ether() / IP() / UDP() / bytes(18))
    counted_pps = (TOTAL_PPS - MEASURED * MEASURED_PPS) / COUNTED
    counted = STLTXCont(pps=counted_pps)
    measured = STLTXCont(pps=MEASURED_PPS)
    return [
        *(STLStream(packet=packet, mode=counted, flow_stats=STLFlowStats(pg_id)) for pg_id in range(COUNTED)),
        *(
            STLStream(packet=packet, mode=measured, flow_stats=STLFlowLatencyStats(2000 + n))
            for n in range(MEASURED)
        ),
    ]


def settled(client: STLClient) -> dict[Any, Any]:
    """The statistics when all that was sent has arrived."""
    deadline = time.monotonic() + 20
    while True:
        stats = client.get_stats()
        if stats[0]["opackets"] == stats[1]["ipackets"]:
            return stats
        assert time.monotonic() < deadline, "packets are on their way for ever"


def test_every_packet_of_all_groups_is_counted(live_server: LocalServer) -> None:
    with live_server.client() as client:
        client.reset()
        client.add_streams(streams(), ports=[0])
        client.start(ports=[0], duration=DURATION_S, force=True)
        client.wait_on_traffic(timeout=60)
        settled(client)
        # Groups are read before ports, so once more for numbers of the same moment.
        stats = settled(client)
        groups, latency = stats["flow_stats"], stats["latency"]
        pg_ids = [*range(COUNTED), *range(2000, 2000 + MEASURED)]
        sent = {pg_id: groups[pg_id]["tx_pkts"]["total"] for pg_id in pg_ids}
        assert sent == {pg_id: groups[pg_id]["rx_pkts"]["total"] for pg_id in pg_ids}
        assert min(sent.values()) > 0
        assert sum(sent.values()) == stats[0]["opackets"] == stats[1]["ipackets"]
        missed = sum(groups[pg_id]["missed_pkts"]["total"] for pg_id in pg_ids)
        assert missed == stats[0]["missed_packets"]
        assert sum(sent.values()) + missed >= TOTAL_PPS * DURATION_S
        assert latency["global"] == {"old_flow": 0, "bad_hdr": 0}
        for pg_id in pg_ids[COUNTED:]:
            assert set(latency[pg_id]["err_cntrs"].values()) == {0}
            assert sum(latency[pg_id]["latency"]["histogram"].values()) == sent[pg_id]
            assert sum(decode(latency[pg_id]["latency"]["hdrh"]).values()) == sent[pg_id]
