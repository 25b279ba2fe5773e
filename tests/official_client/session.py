"""Drive a server with TRex's official client, and print what the client saw as one JSON object.

Runs in the client's own environment (scripts/official-client.sh), never in pytest's: its Scapy and ZeroMQ are
its own. The calls are those of a usual automation script: connect, reset, add streams, clear, start, wait,
read, stop.

usage: session.py SCENARIO HOST RPC_PORT PUB_PORT [ARGUMENT...]
"""

# ruff: noqa: I001  # the order of imports matters here
import json
import logging
import sys
import time

import modern_python  # noqa: F401  # answers what the client cannot find in today's Python
import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
from trex.stl.api import (
    STLClient,
    STLFlowLatencyStats,
    STLFlowStats,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLTXMultiBurst,
    STLTXSingleBurst,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)
from steps import PORTS, WAIT_SECONDS, counters, packet, refusal, run_once, settled_stats, wait_until
import scenarios_devices
import scenarios_fields
import scenarios_nodes
import scenarios_ports
import scenarios_stack
import scenarios_suites


def multipliers(connect):
    """One continuous stream of 100 packets a second, started at each kind of multiplier for half a second."""
    client = connect("itay")
    stream = STLStream(packet=packet(60), mode=STLTXCont(pps=100))
    runs = {}
    for mult in ("100", "20kpps", "5.12mbps", "6.72mbpsl1", "0.01%"):
        runs[mult] = run_once(client, stream, mult=mult, duration=0.5)
    return {
        "runs": runs,
        "warnings": client.get_warnings(),
        "line_rate_gbps": client.get_port_attr(0)["speed"],
    }


def bursts(connect):
    """Bursts that end by themselves, one after the other; a field engine changes each packet."""
    client = connect("itay")
    vm = STLScVmRaw(
        [
            STLVmFlowVar("src", min_value="16.0.0.0", max_value="18.0.0.254", size=4, op="random"),
            STLVmWrFlowVar(fv_name="src", pkt_offset="IP.src"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    streams = [
        STLStream(
            name="first", packet=packet(60), mode=STLTXSingleBurst(total_pkts=300, pps=10_000), next="second"
        ),
        STLStream(
            name="second",
            self_start=False,
            isg=1000,
            packet=packet(124, vm),
            mode=STLTXMultiBurst(pkts_per_burst=50, count=4, ibg=2000.0, pps=10_000),
        ),
    ]
    return {"runs": {"chain": run_once(client, streams, mult="1")}, "warnings": client.get_warnings()}


def stop_early(connect):
    """Traffic without end, stopped by the user; then the statistics are cleared."""
    client = connect("itay")
    client.reset(ports=PORTS)
    client.add_streams(STLStream(packet=packet(), mode=STLTXCont(pps=1000)), ports=PORTS)
    client.clear_stats()
    client.start(ports=PORTS, mult="10kpps")
    active = client.get_active_ports()
    wait_until(lambda: client.get_stats()["total"]["opackets"] >= 500)
    client.stop(ports=PORTS)
    stopped = counters(client)
    later = counters(client)
    client.clear_stats()
    return {
        "active_while_running": active,
        "active_after_stop": client.get_active_ports(),
        "runs": {"stopped": stopped, "later": later, "cleared": counters(client)},
    }


def two_users(connect):
    """A second user is refused, then takes a port by force; the first one's other port goes on."""
    first, second = connect("first"), connect("second")
    first.reset(ports=PORTS)
    first.add_streams(STLStream(packet=packet(), mode=STLTXCont(pps=1000)), ports=PORTS)
    seen = {"refused": refusal(second.acquire, ports=[0])}
    first.start(ports=PORTS, mult="1")
    # The second user hears of the traffic, and the first one of the loss, by events.
    wait_until(lambda: second.get_active_ports(owned=False) == PORTS)
    seen["second_sees_running"] = second.get_active_ports(owned=False)
    second.acquire(ports=[0], force=True)
    wait_until(lambda: first.get_acquired_ports() == [1])
    seen["first_has"] = first.get_acquired_ports()
    seen["second_has"] = second.get_acquired_ports()
    seen["first_is_refused"] = refusal(first.stop, ports=[0])
    second.stop(ports=[0])
    before = first.get_stats()[1]["opackets"]
    seen["port_1_goes_on"] = wait_until(lambda: first.get_stats()[1]["opackets"] > before)
    first.stop(ports=[1])
    return seen


def refusals(connect):
    """Calls that must fail with a message, and leave the server and client working."""
    client = connect("itay")
    client.reset(ports=PORTS)
    seen = {"no_streams": refusal(client.start, ports=[0], mult="1", duration=1)}
    client.add_streams(STLStream(packet=packet(), mode=STLTXCont(pps=1000)), ports=PORTS)
    seen["over_line_rate"] = refusal(client.start, ports=[0], mult="200%", duration=1)
    seen["unknown_method"] = str(client.conn.rpc.transmit("fly_to_the_moon", params={}))
    seen["runs"] = {
        "after": run_once(
            client, STLStream(packet=packet(), mode=STLTXCont(pps=1000)), mult="1", duration=0.1
        )
    }
    return seen


def together(connect):
    """Both ports start at one time of the server's clock, from each kind of core mask."""
    client = connect("itay")
    stream = STLStream(packet=packet(), mode=STLTXCont(pps=1000))
    masks = {"split": STLClient.CORE_MASK_SPLIT, "pin": STLClient.CORE_MASK_PIN, "single": [1, 1]}
    runs = {}
    for name, core_mask in masks.items():
        runs[name] = run_once(client, stream, mult="1", duration=0.2, synchronized=True, core_mask=core_mask)
    return {"runs": runs, "warnings": client.get_warnings()}


def changes(connect):
    """Pause, resume and update while traffic runs: of a port, of a profile, of a stream."""
    client = connect("itay")
    client.reset(ports=PORTS)
    seen = {"idle": refusal(client.update, ports=[0], mult="2")}
    streams = [STLStream(name=name, packet=packet(), mode=STLTXCont(pps=1000)) for name in ("one", "two")]
    ids = client.add_streams(streams, ports=[0])
    client.add_streams(STLStream(packet=packet(124), mode=STLTXCont(pps=500)), ports=["0.extra"])
    client.clear_stats()
    client.start(ports=["0", "0.extra"], mult="1")

    def sent():
        return client.get_stats()[0]["opackets"]

    def goes_on():
        before = sent()
        return wait_until(lambda: sent() > before + 20)

    def stands_still():
        before = sent()
        time.sleep(0.1)
        return sent() == before

    seen["starts"] = goes_on()
    client.pause(ports=["0.extra"])
    seen["paused_while_one_runs"] = client.get_paused_ports()
    client.pause(ports=["0"])
    wait_until(lambda: client.get_paused_ports() == [0])
    seen["paused"] = client.get_paused_ports()
    seen["paused_still"] = wait_until(stands_still)
    client.resume(ports=["0"])
    wait_until(lambda: client.get_transmitting_ports() == [0])
    seen["transmitting"] = client.get_transmitting_ports()
    seen["resumes"] = goes_on()
    for mult in ("1kpps+", "500pps-", "10kpps"):
        client.update(ports=["0"], mult=mult)
    client.pause_streams(0, ids)
    seen["streams_still"] = wait_until(stands_still)
    client.update_streams(0, mult="5kpps", stream_ids=[ids[1]])
    client.resume_streams(0, [ids[1]])
    seen["stream_resumes"] = goes_on()
    seen["too_fast"] = refusal(client.update, ports=["0"], mult="150%")
    client.stop(ports=["0", "0.extra"])
    seen["counters"] = counters(client)

    client.remove_all_streams(ports=["0", "0.extra"])
    client.add_streams(
        STLStream(packet=packet(), mode=STLTXSingleBurst(total_pkts=100_000, pps=10)), ports=[0]
    )
    client.start(ports=[0], mult="1")
    seen["burst"] = refusal(client.pause, ports=[0])
    client.stop(ports=[0])
    return seen


def groups(connect):
    """Streams that are counted by themselves, and one that is measured for latency, on both ports."""
    client = connect("itay")
    client.reset(ports=PORTS)
    burst = STLTXSingleBurst(total_pkts=2000, pps=5000)
    counted = STLStream(packet=packet(), mode=burst, flow_stats=STLFlowStats(pg_id=7))
    client.add_streams(counted, ports=PORTS)
    measured = STLTXSingleBurst(total_pkts=500, pps=1000)
    client.add_streams(
        STLStream(packet=packet(), mode=measured, flow_stats=STLFlowLatencyStats(12)), ports=[0]
    )
    twice = STLStream(packet=packet(), flow_stats=STLFlowLatencyStats(12))
    seen = {"twice": refusal(client.add_streams, twice, ports=[1]), "active": client.get_active_pgids()}
    runs = []
    for _ in range(2):
        client.clear_stats()
        client.start(ports=PORTS, mult="2")
        client.wait_on_traffic(ports=PORTS, timeout=WAIT_SECONDS)
        stats = settled_stats(client)
        runs.append({part: stats[part] for part in ("flow_stats", "latency")})
    client.remove_all_streams(ports=PORTS)
    return {**seen, "runs": runs, "active_after": client.get_active_pgids()}


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        *(multipliers, bursts, stop_early, two_users, refusals, together, changes, groups),
        *scenarios_devices.SCENARIOS,
        *scenarios_fields.SCENARIOS,
        *scenarios_nodes.SCENARIOS,
        *scenarios_ports.SCENARIOS,
        *scenarios_stack.SCENARIOS,
        *scenarios_suites.SCENARIOS,
    )
}


def main():
    name, host, rpc_port, pub_port = sys.argv[1:5]
    clients = []

    def connect(user):
        client = STLClient(
            username=user,
            server=host,
            sync_port=int(rpc_port),
            async_port=int(pub_port),
            verbose_level="critical",
        )
        client.connect()
        clients.append(client)
        return client

    logging.disable(logging.CRITICAL)
    try:
        seen = SCENARIOS[name](connect, *sys.argv[5:])
    finally:
        for client in reversed(clients):
            if client.is_connected():
                client.disconnect()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
