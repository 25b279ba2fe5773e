"""Ports whose addresses are in network namespaces: what is refused, and what is kept."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from allosaur import NSCmds, STLClient, STLError
from allosaur.server import LocalServer, find_binary

pytestmark = pytest.mark.usefixtures("networks_work")

UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]


@pytest.fixture(scope="module")
def client() -> Iterator[STLClient]:
    options = ["--stack", "linux_based"]
    with LocalServer(ports=["memory", "memory"], options=options) as server, server.client() as connected:
        connected.reset()
        connected.set_service_mode()
        yield connected


def shown(client: STLClient) -> str:
    """The addresses and routes in the namespace of port 0, as Linux shows them."""
    (own,) = (node for node in client.get_ns_nodes(0) if node.get("is_port"))
    words = [("address", "show", "dev", "eth0"), ("route", "show"), ("-6", "route", "show")]
    asked = [["ip", "-n", own["linux-ns"], *command] for command in words]
    done = [subprocess.run(command, capture_output=True, text=True, check=True) for command in asked]
    return "".join(one.stdout for one in done)


def set_ipv4(client: STLClient, own: str, other: str) -> None:
    """Set the addresses; nobody looks for the other end."""
    params = {"port_id": 0, "src_addr": own, "dst_addr": other, "resolved_mac": "02:00:00:00:00:99"}
    client._connection.session().rpc.call("set_l3", **params)


def test_what_the_kernel_refuses_leaves_all_as_it_was(client: STLClient) -> None:
    set_ipv4(client, "192.0.2.1", "192.0.2.9")
    client.conf_ipv6(0, True, "2001:db8::1")
    before = shown(client)
    assert "192.0.2.1/32" in before
    assert "default via 192.0.2.9" in before
    assert "2001:db8::1/64" in before
    layers = client.get_port_info(0)
    with pytest.raises(STLError, match="default gateway"):
        set_ipv4(client, "192.0.2.5", "192.0.2.5")
    assert shown(client) == before
    assert client.get_port_info(0) == layers
    client.set_l2_mode(0, "02:00:00:00:00:99")
    assert "192.0.2" not in shown(client)
    client.conf_ipv6(0, False)
    assert "2001:db8" not in shown(client)


def test_commands_of_nodes_do_not_change_the_port(client: STLClient) -> None:
    (own,) = client.get_ns_nodes(0)
    mac = own["ether"]["src"]
    for method, arguments in {
        "add_node": {},
        "remove_node": {},
        "set_ipv4": {"ipv4": "192.0.2.7", "dg": "192.0.2.9"},
        "clear_ipv4": {},
        "set_ipv6": {"enable": True},
        "set_vlan": {"vlans": [7]},
    }.items():
        with pytest.raises(STLError, match=f"{mac}"):
            client.set_namespace(0, method, mac=mac, **arguments)
    cmds = NSCmds()
    cmds.set_vlan_filter(mac, is_no_tcp_udp=True, is_tcp_udp=True)
    cmds.set_mtu(mac, 1400)
    client.set_namespace_start(0, cmds)
    client.wait_for_async_results(0)
    (changed,) = client.get_ns_nodes(0)
    assert changed["vlan_filter"] == 3


def test_a_vlan_out_of_range_is_named(client: STLClient) -> None:
    with pytest.raises(STLError, match="vlan"):
        client.set_vlan(0, 4096)


def test_a_stack_that_is_none_is_named() -> None:
    command = [str(find_binary()), "serve", "--stack", "windows"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "legacy or linux_based" in done.stderr


def test_who_may_not_make_namespaces_is_told_which_capability_is_missing() -> None:
    command = [*UNPRIVILEGED, str(find_binary()), "serve", "--stack", "linux_based", "--rpc-port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "CAP_SYS_ADMIN" in done.stderr
    assert "sudo" in done.stderr
