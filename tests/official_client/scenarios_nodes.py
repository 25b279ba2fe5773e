"""Scenarios of Linux nodes, which reach each other through the ports."""

import subprocess
import sys

from scenarios_ports import in_service
from steps import PORTS, refusal
from trex.common.trex_ns import NSCmds

MACS = ["02:00:00:00:01:01", "02:00:00:00:02:01"]
ADDRESSES = ["192.0.2.1", "192.0.2.2"]
SHARED_MAC = "02:00:00:00:01:07"


# Sends an echo request, and ends with 0 when the answer has come.
PING = """
import socket, struct, sys
address, seconds, size = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
is_ipv6 = ":" in address
family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
protocol = socket.IPPROTO_ICMPV6 if is_ipv6 else socket.IPPROTO_ICMP
message = struct.pack("!BBHHH", 128 if is_ipv6 else 8, 0, 0, 7, 1) + bytes(size)
total = sum(struct.unpack(f"!{len(message) // 2}H", message))
total = (total & 0xffff) + (total >> 16)
if not is_ipv6:
    message = message[:2] + struct.pack("!H", ~total & 0xffff) + message[4:]
with socket.socket(family, socket.SOCK_RAW, protocol) as sock:
    sock.settimeout(seconds)
    sock.sendto(message, (address, 0))
    while True:
        got = sock.recv(65536)
        header = 0 if is_ipv6 else 20
        if got[header] == (129 if is_ipv6 else 0) and got[header + 4:] == message[4:]:
            sys.exit(0)
"""
# What is not to come is waited for this long only: it would be there at once.
SHORT, LONG = "1", "20"


def ping(namespace, address, seconds=LONG, size=32):
    """Whether an address answers an echo request from a namespace."""
    command = ["ip", "netns", "exec", namespace, sys.executable, "-c", PING, address, seconds, str(size)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def batch(client, port, **commands):
    """A batch of commands without parameters, or with those of a node."""
    cmds = NSCmds()
    for name, arguments in commands.items():
        getattr(cmds, name)(**arguments)
    client.set_namespace_start(port, cmds)
    return client.wait_for_async_results(port)


def namespace_of(client, port, mac):
    info = client.set_namespace(port, method="get_nodes_info", macs_list=[mac])
    return info["result"]["nodes"][0]["linux-ns"]


def nodes(connect):
    """A node on each port: IPv4, IPv6, VLANs, filters, counters; and all are gone at the end."""
    client = in_service(connect)
    for port in PORTS:
        batch(
            client,
            port,
            add_node={"mac": MACS[port]},
            set_ipv4={"mac": MACS[port], "ipv4": ADDRESSES[port], "dg": ADDRESSES[1 - port]},
            set_ipv6={"mac": MACS[port], "enable": True, "src_ipv6": f"2001:db8::{port + 1}"},
        )
    names = [namespace_of(client, port, MACS[port]) for port in PORTS]
    seen = {"pinged": ping(names[0], ADDRESSES[1])}
    seen["pinged_ipv6"] = ping(names[1], "2001:db8::1")
    seen["pinged_large"] = ping(names[1], ADDRESSES[0], size=4000)
    batch(client, 0, set_vlan={"mac": MACS[0], "vlans": [100, 200]})
    subprocess.run(["ip", "-n", names[0], "neigh", "flush", "all"], check=True)
    seen["pinged_other_vlan"] = ping(names[0], ADDRESSES[1], SHORT)
    batch(client, 1, set_vlan={"mac": MACS[1], "vlans": [100, 200]})
    seen["pinged_vlan"] = ping(names[0], ADDRESSES[1])
    batch(client, 1, set_filter={"mac": MACS[1], "bpf_filter": "not icmp"})
    seen["pinged_filtered"] = ping(names[0], ADDRESSES[1], SHORT)
    seen["info"] = client.set_namespace(0, method="get_nodes_info", macs_list=[MACS[0]])["result"]["nodes"][0]
    seen["info"]["linux-ns"] = seen["info"]["linux-ns"].split("-")[0]
    meta, values = (r["result"] for r in batch(client, 1, counters_get_meta={}, counters_get_values={}))
    by_number = {str(row["id"]): row["name"] for row in meta["data"]}
    seen["counted"] = sorted(by_number[number] for number in values[""])
    batch(client, 1, clear_counters={})
    seen["cleared"] = client.set_namespace(1, method="counters_get_values")["result"][""]
    seen["nodes"] = [client.set_namespace(port, method="get_nodes")["result"]["nodes"] for port in PORTS]
    client.namespace_remove_all()
    seen["left"] = [client.set_namespace(port, method="get_nodes")["result"]["nodes"] for port in PORTS]
    left = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    seen["left_names"] = [name for name in names if name in left]
    return seen


def shared_nodes(connect):
    """Two nodes in one namespace, and one on the other port that their gateway is."""
    client = in_service(connect)
    shared = client.set_namespace(0, method="add_shared_ns")["result"]
    macs = [MACS[0], SHARED_MAC]
    for mac, address in zip(macs, ["192.0.2.1", "198.51.100.1"], strict=True):
        batch(
            client,
            0,
            add_node={"mac": mac, "shared_ns": shared},
            set_ipv4={"mac": mac, "ipv4": address, "subnet": 24, "shared_ns": True},
        )
    batch(client, 0, set_dg={"shared_ns": shared, "dg": ADDRESSES[1]})
    batch(
        client,
        1,
        add_node={"mac": MACS[1]},
        set_ipv4={"mac": MACS[1], "ipv4": ADDRESSES[1], "dg": ADDRESSES[0]},
    )
    seen = {"pinged": ping(shared, ADDRESSES[1])}
    seen["has_nodes"] = refusal(client.set_namespace, 0, method="remove_shared_ns", shared_ns=shared)
    for mac in macs:
        client.set_namespace(0, method="remove_node", mac=mac)
    client.set_namespace(0, method="remove_shared_ns", shared_ns=shared)
    client.namespace_remove_all()
    return seen


def bad_nodes(connect):
    """What is wrong with a command is told with its result; a batch goes on, and can be cancelled."""
    client = in_service(connect)
    client.set_namespace(0, method="add_node", mac=MACS[0])
    call = client.set_namespace
    seen = {
        "twice": refusal(call, 0, method="add_node", mac=MACS[0]),
        "vlan": refusal(call, 0, method="set_vlan", mac=MACS[0], vlans=[4095]),
        "unknown": refusal(call, 0, method="remove_node", mac=MACS[1]),
        "bird": refusal(call, 0, method="add_node", mac=MACS[1], is_bird=True),
        "shared": refusal(call, 0, method="add_node", mac=MACS[1], shared_ns="dut"),
        "mtu": refusal(call, 0, method="set_mtu", mac=MACS[0], mtu=7),
        "filter": refusal(call, 0, method="set_filter", mac=MACS[0], bpf_filter="no such words"),
    }
    cmds = NSCmds()
    cmds.add_cmd("no_such_command")
    cmds.get_nodes()
    client.set_namespace_start(0, cmds)
    seen["command"] = refusal(client.wait_for_async_results, 0)
    cmds = NSCmds()
    for number in range(200):
        cmds.add_node(f"02:00:00:00:03:{number:02x}")
    progress = []
    client.set_namespace_start(0, cmds)
    seen["cancelled"] = refusal(client.wait_for_async_results, 0, timeout=0, cb=progress.append)
    seen["progress"] = progress[0] if progress else None
    client.namespace_remove_all()
    return seen


SCENARIOS = (nodes, shared_nodes, bad_nodes)
