"""Scripts as users have them, which run with TRex's official client and with ours, and print the same.

usage: same_scripts.py SCRIPT HOST RPC_PORT PUB_PORT [ARGUMENT...]

Run by the official client's own Python, it is for that client; by ours, for ours.
"""

# ruff: noqa: I001  # the order of imports matters here
import contextlib
import io
import json
import sys
import time

with contextlib.suppress(ImportError):  # only where the official client is
    import modern_python  # noqa: F401
    import lbr_trex_client  # noqa: F401

from trex.astf.api import ASTFClient
from trex.stl.api import (
    IP,
    UDP,
    Ether,
    STLClient,
    STLError,
    STLFlowStats,
    STLPktBuilder,
    STLStream,
    STLTXSingleBurst,
)


def burst(packets, pg_id=None):
    """A burst that ends by itself."""
    frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025) / (b"x" * 18)
    flow_stats = STLFlowStats(pg_id) if pg_id is not None else None
    mode = STLTXSingleBurst(pps=100_000, total_pkts=packets)
    return STLStream(packet=STLPktBuilder(pkt=frame), mode=mode, flow_stats=flow_stats)


def send(client, packets, pg_id=None):
    """Send a burst out of port 0, and wait until it came to port 1."""
    client.remove_all_streams(ports=[0])
    client.add_streams(burst(packets, pg_id), ports=[0])
    before = client.get_stats()[1]["ipackets"]
    client.start(ports=[0])
    client.wait_on_traffic(ports=[0])
    until = time.monotonic() + 20
    while client.get_stats()[1]["ipackets"] < before + packets and time.monotonic() < until:
        time.sleep(0.02)


def counted(client, ports=None):
    """What was sent and received, of each port and in all."""
    stats = client.get_stats() if ports is None else client.get_stats(ports=ports)
    return [
        [str(key), stats[key]["opackets"], stats[key]["ipackets"]]
        for key in sorted((key for key in stats if isinstance(key, int) or key == "total"), key=str)
    ]


def a_receiver_that_is_not_ours(connect):
    """Only the sender is acquired; both are counted, whatever ports are named."""
    client = connect(STLClient)
    client.acquire(ports=[0], force=True)
    send(client, 300)
    seen = {"all": counted(client), "of the sender": counted(client, [0])}
    client.clear_stats(ports=[0])
    seen["cleared by the sender"] = counted(client)
    send(client, 20)
    client.reset(ports=[0])
    seen["reset"] = counted(client)
    return seen


def a_fresh_client(connect):
    """Counters and packet groups are from connect() on."""
    first = connect(STLClient)
    first.reset(ports=[0])
    send(first, 100, pg_id=5)
    second = connect(STLClient, "another")
    seen = {"at once": counted(second, [0, 1])}
    send(first, 30, pg_id=5)
    seen["later"] = counted(second, [0, 1])
    second.disconnect()
    second.connect()
    seen["connected again"] = counted(second, [0, 1])
    return seen


def a_fresh_stateful_client(connect):
    """A stateful client has the baseline, too."""
    first = connect(ASTFClient)
    first.reset()
    client_sum = first.get_traffic_stats(is_sum=True)["client"]
    second = connect(ASTFClient, "another")
    return {
        "ports": counted(second, [0, 1]),
        "sum": {name: client_sum.get(name, 0) for name in ("tcps_connects", "tcps_sndbyte")},
        "states": [getattr(second, name) for name in dir(second) if name.startswith("STATE_")],
        "profiles": second.get_profiles_state(),
    }


def lines(connect, profile):
    """The commands of the console, one line each."""
    client = connect(STLClient)
    with contextlib.redirect_stdout(io.StringIO()):
        client.acquire_line("-p 0 1 --force")
        client.reset_line("-a")
        client.set_port_attr_line("-p 0 1 --prom on")
        client.service_line("-p 0")
        client.set_l2_mode_line("-p 0 --dst 02:a1:05:00:00:01")
        client.set_vlan_line("-p 0 --vlan 10")
        client.set_vlan_line("-p 0 -c")
        client.ping_line("")
        client.service_line("-p 0 --off")
        client.start_line(f"-f {profile} -p 0 -m 1 -t packets=40")
        client.wait_on_traffic(ports=[0])
        time.sleep(0.1)
    seen = {"burst": counted(client), "promiscuous": client.get_port_attr(1)["prom"]}
    with contextlib.redirect_stdout(io.StringIO()):
        client.start_line(f"-f {profile} -p 0 -m 1kpps --force -t packets=0")
        client.pause_line("-p 0")
        seen["paused"] = client.get_paused_ports()
        client.resume_line("-p 0")
        client.update_line("-p 0 -m 2kpps")
        seen["active"] = client.get_active_ports()
        client.stop_line("-a")
        client.stop_line("-p 0 --remove")
        seen["streams"] = len(client.ports[0].streams)
        client.clear_stats_line("-a")
        seen["cleared"] = counted(client)
        client.show_stats_line("-p --port 0 1")
        client.streams_line("-p 0")
        client.get_events_line("-c")
        client.release_line("-p 1")
        seen["ours"] = client.get_acquired_ports()
        client.disconnect_line("")
        seen["connected"] = [client.is_connected()]
        client.connect_line("-r")
        seen["connected"].append(client.is_connected())
    seen["commands"] = sorted(name for name in client.get_console_methods() if not name.startswith("tpg_"))
    return seen


def what_is_refused(connect):
    """A port that is not there."""
    client = connect(STLClient)
    refused = []
    for call in (lambda: client.get_stats(ports=[7]), lambda: client.clear_stats(ports=[7])):
        try:
            call()
            refused.append(False)
        except STLError:
            refused.append(True)
    return refused


SCRIPTS = {
    one.__name__: one
    for one in (
        *(a_receiver_that_is_not_ours, a_fresh_client, a_fresh_stateful_client, lines),
        what_is_refused,
    )
}


def main():
    """Run one, and print what it saw."""
    name, host, rpc_port, pub_port, *arguments = sys.argv[1:]

    def connect(kind, user="itay"):
        client = kind(username=user, server=host, sync_port=int(rpc_port), async_port=int(pub_port))
        client.connect()
        return client

    print(json.dumps(SCRIPTS[name](connect, *arguments)))


if __name__ == "__main__":
    main()
