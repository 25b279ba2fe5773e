"""Scenarios of ports in network namespaces: the calls of TRex's suites for its Linux stack."""

import subprocess

from scenarios_nodes import batch, namespace_of, ping
from scenarios_ports import in_service
from steps import refusal
from trex.common.services.trex_service_icmp import ServiceICMP
from trex.common.stats.trex_ns import CNsStats
from trex.common.trex_ns import NSCmds

NODE = "00:01:02:03:04:05"
OTHER = "00:01:02:03:04:06"


def counted(client, port):
    """The counters of a port's nodes by their names, as TRex's client shows them."""
    cmds = NSCmds()
    cmds.counters_get_meta()
    cmds.counters_get_values()
    client.set_namespace_start(port, cmds)
    meta, values = client.wait_for_async_results(port)
    stats = CNsStats()
    stats.set_meta_values(meta["result"]["data"], values["result"][""])
    return stats.get_values_stats()


def started(client, port, cmds):
    client.set_namespace_start(port, cmds)
    return client.wait_for_async_results(port)


def nodes_of(client, port):
    return client.set_namespace(port, method="get_nodes")["result"]["nodes"]


def add_remove(client, shared):
    """test_ns_add_remove and test_shared_ns_add_remove."""
    batch(client, 0, clear_counters={})
    cmds = NSCmds()
    if shared:
        name = str(client.set_namespace(0, method="add_shared_ns")["result"])
        cmds.add_node(NODE, shared_ns=name)
        cmds.set_ipv4(NODE, ipv4="1.1.1.3", subnet=24, shared_ns=True)
        cmds.set_ipv6(NODE, enable=True, shared_ns=True)
        cmds.set_vlan(NODE, vlans=[22], tpids=[0x8011])
    else:
        cmds.add_node(NODE)
        cmds.set_ipv4(NODE, "1.1.1.3", "1.1.1.2")
        cmds.set_ipv6(NODE, True)
    started(client, 0, cmds)
    seen = {"added": nodes_of(client, 0)}
    seen["sent_to_groups"] = counted(client, 0).get("tx_multicast_pkts", 0)
    batch(client, 0, remove_node={"mac": NODE})
    seen["removed"] = nodes_of(client, 0)
    batch(client, 0, clear_counters={})
    seen["counted"] = counted(client, 0)
    return seen


def pinged(client, cmds, address):
    """The answers to port 1, which pings a node of port 0."""
    client.set_port_attr(promiscuous=True, multicast=True)
    started(client, 0, cmds)
    client.set_l3_mode_line(f"-p 1 --src 1.1.1.2 --dst {address}")
    records = client.ping_ip(1, address)
    client.set_port_attr(promiscuous=False, multicast=False)
    return [record.state == ServiceICMP.PINGRecord.SUCCESS for record in records]


def ping_node(client):
    """test_ping_to_ns."""
    cmds = NSCmds()
    cmds.add_node(NODE)
    cmds.set_ipv4(NODE, "1.1.1.3", "1.1.1.2")
    cmds.set_ipv6(NODE, True)
    return pinged(client, cmds, "1.1.1.3")


def ping_beside_vlan(client):
    """test_ping_with_vlan."""
    cmds = NSCmds()
    for mac, address in ((NODE, "1.1.1.3"), (OTHER, "1.1.1.4")):
        cmds.add_node(mac)
        cmds.set_ipv4(mac, address, "1.1.1.2")
        cmds.set_ipv6(mac, True)
    cmds.set_vlan(NODE, [21], [0x8100])
    return pinged(client, cmds, "1.1.1.4")


def ping_shared(client):
    """test_ping_to_shared_ns."""
    name = str(client.set_namespace(0, method="add_shared_ns")["result"])
    cmds = NSCmds()
    cmds.add_node(NODE, shared_ns=name)
    cmds.set_ipv4(NODE, ipv4="1.1.1.3", subnet=24, shared_ns=True)
    cmds.set_dg(shared_ns=name, dg="1.1.1.2")
    cmds.set_ipv6(NODE, enable=True, shared_ns=True)
    return pinged(client, cmds, "1.1.1.3")


def many(client, shared):
    """test_many_ns and test_many_shared_ns."""
    name = str(client.set_namespace(0, method="add_shared_ns")["result"]) if shared else None
    cmds = NSCmds()
    for number in range(258, 358):
        mac = f"00:01:02:03:{number >> 8:02x}:{number & 0xFF:02x}"
        address = f"1.1.{(number + 1) >> 8}.{(number + 1) & 0xFF}"
        cmds.add_node(mac, shared_ns=name)
        if shared:
            cmds.set_ipv4(mac, ipv4=address, subnet=24, shared_ns=True)
        else:
            cmds.set_ipv4(mac, address, "1.1.1.2")
        cmds.set_ipv6(mac, enable=True, shared_ns=shared)
    started(client, 0, cmds)
    return len(nodes_of(client, 0))


def shared_info(client):
    """test_get_shared_ns_node_info."""
    name = str(client.set_namespace(0, method="add_shared_ns")["result"])
    cmds = NSCmds()
    cmds.add_node(NODE, shared_ns=name)
    cmds.set_ipv4(NODE, ipv4="1.1.1.3", subnet=24, shared_ns=True)
    cmds.set_ipv6(NODE, enable=True, shared_ns=True)
    cmds.set_vlan(NODE, vlans=[22], tpids=[0x8100])
    started(client, 0, cmds)
    (node,) = client.set_namespace(0, method="get_nodes_info", macs_list=[NODE])["result"]["nodes"]
    ipv4 = node["ipv4"]
    return [node["ether"]["src"], ipv4["src"], ipv4["subnet"], node["ipv6"]["enabled"], node["vlan"]]


def shared_vlans(client):
    """test_setting_shared_ns_vlans."""
    name = str(client.set_namespace(0, method="add_shared_ns")["result"])
    client.set_namespace(0, method="add_node", mac=NODE, shared_ns=name)
    seen = []
    for vlans, tpids in (([22], [0x8100]), ([22, 23], [0x8100, 0x8100])):
        cmds = NSCmds()
        cmds.set_vlan(NODE, vlans, tpids)
        cmds.get_nodes_info([NODE])
        seen.append(started(client, 0, cmds)[1]["result"]["nodes"][0]["vlan"])
    return seen


def neighbors(client):
    """test_stl_ipv6_ping and test_stl_ipv6_scan6, on ports without IPv6 and with it."""
    seen = {}
    for enabled in (False, True):
        client.conf_ipv6(1, enabled)
        replies = client.ping_ip(src_port=0, dst_ip="ff02::1", count=1)
        strangers = client.ping_ip(src_port=0, dst_ip="1234::1234", count=1)
        seen[str(enabled)] = {
            "all": [reply["status"] for reply in replies],
            "strangers": [reply["status"] for reply in strangers],
            "scanned": [one["mac"] for one in client.scan6(ports=0)[0]],
        }
    client.conf_ipv6(1, False)
    return seen


SUITE = {
    "ns_add_remove": lambda client: add_remove(client, False),
    "ping_to_ns": ping_node,
    "ping_with_vlan": ping_beside_vlan,
    "many_ns": lambda client: many(client, False),
    "shared_ns_add_remove": lambda client: add_remove(client, True),
    "many_shared_ns": lambda client: many(client, True),
    "ping_to_shared_ns": ping_shared,
    "get_shared_ns_node_info": shared_info,
    "setting_shared_ns_vlans": shared_vlans,
    "ipv6": neighbors,
}


def stack_case(connect, name):
    """A case of the suites, after what comes before each of them."""
    client = in_service(connect)
    client.reset()
    client.set_service_mode()
    client.namespace_remove_all()
    seen = {"stack": client.get_server_system_info()["ports"][0]["stack"], "seen": SUITE[name](client)}
    client.namespace_remove_all()
    client.set_service_mode(enabled=False)
    return seen


def port_namespaces(connect):
    """The kernel has the addresses of ports: it answers, and programs in the namespace of a port use them."""
    client = in_service(connect)
    seen = {}
    for port, (own, other) in enumerate((("192.0.2.1", "192.0.2.2"), ("192.0.2.2", "192.0.2.1"))):
        # The first finds nobody yet.
        refusal(client.set_l3_mode, port, own, other)
        client.conf_ipv6(port, True, f"2001:db8::{port + 1}")
    client.arp(ports=[0, 1])
    macs = [client.get_port_attr(port)["src_mac"] for port in (0, 1)]
    names = [namespace_of(client, port, mac) for port, mac in enumerate(macs)]
    seen["layers"] = [client.ports[port].get_layer_cfg() for port in (0, 1)]
    for layers, mac in zip(seen["layers"], reversed(macs), strict=True):
        seen.setdefault("resolved", []).append(layers["ether"]["dst"] == mac)
    seen["client_pings"] = client.ping_ip(0, "192.0.2.2", count=1)[0].state == ServiceICMP.PINGRecord.SUCCESS
    seen["kernel_pings"] = ping(names[0], "192.0.2.2")
    seen["kernel_pings_ipv6"] = ping(names[1], "2001:db8::1")
    seen["listed"] = [nodes_of(client, port) for port in (0, 1)]
    client.set_vlan(ports=[0, 1], vlan=[100, 200])
    subprocess.run(["ip", "-n", names[0], "neigh", "flush", "all"], check=True)
    seen["pinged_in_vlan"] = ping(names[0], "192.0.2.2")
    client.namespace_remove_all()
    seen["pinged_after_removal"] = ping(names[0], "192.0.2.2")
    client.clear_vlan(ports=[0, 1])
    client.set_l2_mode(0, macs[1])
    addresses = ["ip", "-n", names[0], "-4", "address", "show", "dev", "eth0"]
    seen["left"] = subprocess.run(addresses, capture_output=True, text=True, check=True).stdout
    seen["names"] = names
    return seen


SCENARIOS = (stack_case, port_namespaces)
