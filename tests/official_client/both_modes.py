"""TRex's official stateless and stateful clients at one server that has both modes.

Prints what they saw as one JSON object. Each does what a usual script does, without a word about modes.

usage: both_modes.py HOST RPC_PORT PUB_PORT
"""

# ruff: noqa: I001  # the order of imports matters here
import json
import sys

import modern_python  # noqa: F401  # answers what the client cannot find in today's Python
import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
from trex.astf.api import ASTFClient
from trex.stl.api import STLClient, STLStream, STLTXCont, STLTXSingleBurst
from stateful_session import profile
from steps import packet, refusal

PACKETS = 500


def client(kind, user, options):
    made = kind(username=user, verbose_level="error", **options)
    made.connect()
    return made


def streams_alone(options):
    """All four ports, reset by force; a burst from the first to the second."""
    streams = client(STLClient, "sam", options)
    streams.reset()
    stream = STLStream(packet=packet(100), mode=STLTXSingleBurst(pps=5000, total_pkts=PACKETS))
    streams.add_streams(stream, ports=[0])
    streams.clear_stats()
    streams.start(ports=[0], force=True)
    streams.wait_on_traffic(ports=[0])
    received = streams.get_stats()[1]["ipackets"]
    streams.disconnect()
    return received


def flows_alone(options):
    """All four ports, reset by force; connections between both pairs."""
    flows = client(ASTFClient, "flo", options)
    flows.reset()
    flows.load_profile(profile())
    flows.clear_stats()
    flows.start(mult=20, duration=1)
    flows.wait_on_traffic()
    traffic = flows.get_stats()["traffic"]
    flows.disconnect()
    return [traffic["client"]["tcps_connects"], traffic["client"].get("tcps_drops", 0)]


def side_by_side(options):
    """Streams have the first pair; who comes for flows, without force, gets the second."""
    streams = client(STLClient, "sam", options)
    streams.acquire(ports=[0, 1])
    streams.add_streams(STLStream(packet=packet(100), mode=STLTXCont(pps=1000)), ports=[0])
    streams.start(ports=[0], force=True)
    flows = client(ASTFClient, "flo", options)
    flows.acquire()
    owned = sorted(port for port in flows.get_all_ports() if flows.ports[port].is_acquired())
    flows.load_profile(profile())
    flows.clear_stats()
    refused = refusal(streams.acquire, ports=[2])
    flows.start(mult=20, duration=1)
    flows.wait_on_traffic(profile_id="_")  # Without it the client wants all ports.
    traffic = flows.get_stats()["traffic"]
    sending = bool(streams.is_traffic_active(ports=[0]))
    flows.disconnect()
    streams.stop(ports=[0])
    stats = streams.get_stats()
    streams.remove_all_streams(ports=[0])
    streams.disconnect()
    return {
        "flow_ports": owned,
        "connections": traffic["client"]["tcps_connects"],
        "sending": sending,
        "lost": stats[0]["opackets"] - stats[1]["ipackets"],
        "refused": refused,
    }


def main():
    host, rpc_port, pub_port = sys.argv[1:4]
    options = {"server": host, "sync_port": int(rpc_port), "async_port": int(pub_port)}
    seen = {
        "streams": streams_alone(options),
        "flows": flows_alone(options),
        "streams_again": streams_alone(options),
        "side_by_side": side_by_side(options),
        "flows_again": flows_alone(options),
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
