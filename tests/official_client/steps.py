"""What the scenarios share: packets, waiting, counters. For the official client's own environment."""

# ruff: noqa: I001  # the order of imports matters here
import time

import modern_python  # noqa: F401  # answers what the client cannot find in today's Python
import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
from trex.stl.api import IP, UDP, Ether, STLError, STLPktBuilder

PORTS = [0, 1]
WAIT_SECONDS = 60


def packet(size=60, vm=None):
    """A UDP packet of `size` bytes without FCS."""
    headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025)
    return STLPktBuilder(pkt=headers / (b"x" * (size - len(headers))), vm=vm)


def wait_until(holds):
    """Whether a condition comes to hold within ten seconds."""
    deadline = time.monotonic() + 10
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def settled_stats(client):
    """The statistics, once all that was sent has arrived; if it does not arrive, as they are."""

    def all_arrived():
        total = client.get_stats()["total"]
        return total["opackets"] == total["ipackets"]

    wait_until(all_arrived)
    return client.get_stats()


def counters(client):
    """The counters that the tests look at, for each port, with the server's own count of missed packets."""
    stats = settled_stats(client)
    seen = {}
    for port in PORTS:
        seen[str(port)] = {
            key: stats[port][key]
            for key in ("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors")
        }
        reply = client.conn.rpc.transmit("get_port_stats", params={"port_id": port})
        seen[str(port)]["missed"] = reply.data()["missed_packets"]
    seen["total"] = {key: stats["total"][key] for key in ("opackets", "ipackets")}
    return seen


def run_once(client, streams, **start):
    """Load the streams on both ports, run them to their end, and return the counters."""
    client.reset(ports=PORTS)
    client.add_streams(streams, ports=PORTS)
    client.clear_stats()
    missed_before = {port: counters(client)[str(port)]["missed"] for port in PORTS}
    client.start(ports=PORTS, **start)
    client.wait_on_traffic(ports=PORTS, timeout=WAIT_SECONDS)
    after = counters(client)
    for port in PORTS:
        after[str(port)]["missed"] -= missed_before[port]
    return after


def refusal(call, *arguments, **options):
    """The message of the client's error when the call is refused, or None when it is not."""
    try:
        call(*arguments, **options)
    except STLError as error:
        return str(error)
    return None
