"""Counters are whole numbers in the JSON text, as strict languages want them; only rates are not."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
import zmq
from allosaur import STLFlowLatencyStats, STLFlowStats, STLPktBuilder, STLStream, STLTXSingleBurst
from allosaur.server import LocalServer
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

NO_COUNTER = re.compile(
    # Rates by their names; in packet groups by the kind of rate; what was measured in microseconds; and
    # TRex's numbers of flows, which are doubles there.
    r"(_bps|_pps|_cps|_util|_util_raw|_per_core|_factor|_flows)$"
    r"|\.(tps|rps|tbs|rbs|tbs_L1|rbs_L1)\.\d+$"
    r"|\.lat\.(average|jit|total_max|total_min|last_max|min|max|p50|p90|p99|p99_9|p999)$"
)


@pytest.fixture
def ask(server: LocalServer) -> Iterator[Any]:
    """Ask the server; give the result with floating numbers as their text."""
    context = zmq.Context()
    requests = context.socket(zmq.REQ)
    requests.setsockopt(zmq.RCVTIMEO, 20_000)
    requests.connect(f"tcp://{server.host}:{server.rpc_port}")

    def call(method: str, **params: Any) -> Any:
        requests.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
        reply = json.loads(requests.recv(), parse_float=lambda text: ("float", text))
        assert "result" in reply, reply
        return reply["result"]

    yield call
    context.destroy(linger=0)


def floats(path: str, value: Any) -> Iterator[str]:
    """The paths of floating numbers."""
    if isinstance(value, tuple):
        yield path
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from floats(f"{path}.{name}", inner)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from floats(f"{path}.{at}", inner)


def test_what_counts_is_a_whole_number_in_every_reply(server: LocalServer, ask: Any) -> None:
    headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12)
    builder = STLPktBuilder(pkt=headers / (b"x" * 30))
    mode = STLTXSingleBurst(pps=10_000, total_pkts=500)
    with server.client() as client:
        client.reset()
        client.add_streams(STLStream(packet=builder, mode=mode, flow_stats=STLFlowStats(7)), ports=[0])
        client.add_streams(STLStream(packet=builder, mode=mode, flow_stats=STLFlowLatencyStats(8)), ports=[0])
        client.start(ports=[0])
        client.wait_on_traffic()
        deadline = time.monotonic() + 10
        while client.get_stats()[1]["ipackets"] < 1000 and time.monotonic() < deadline:
            time.sleep(0.01)
        known = {"api_h": ask("api_sync_v2", name="STL", major=5, minor=1)["api_h"]}
        replies = {
            "port": ask("get_port_stats", port_id=0, by_size=True, **known),
            "other_port": ask("get_port_stats", port_id=1, **known),
            "global": ask("get_global_stats", **known),
            "xstats": ask("get_port_xstats_values", port_id=1, **known),
            "groups": ask("get_pgid_stats", pgids=[7, 8], **known),
            "utilization": ask("get_utilization", **known),
            "status": ask("get_port_status", port_id=0, **known)["rx_info"],
        }
    assert replies["port"]["opackets"] == replies["other_port"]["ipackets"] == 1000
    assert sum(replies["groups"]["latency"]["8"]["lat"]["histogram"].values()) == 500
    found = [path for name, reply in replies.items() for path in floats(name, reply)]
    assert [path for path in found if not NO_COUNTER.search(path)] == []
    assert any(path.endswith("_pps") for path in found), "rates are floating numbers"
