"""TRex's official client with ports in network namespaces: the calls of its suites."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from allosaur.server import LocalServer

pytestmark = pytest.mark.usefixtures("networks_work")


@pytest.fixture(scope="module")
def linux_based(run_on: Any) -> Iterator[Any]:
    """Run a scenario on a server whose ports are in network namespaces."""
    with LocalServer(ports=["memory", "memory"], options=["--stack", "linux_based"]) as server:
        yield lambda name, *arguments: run_on(server, name, *arguments)


@pytest.fixture
def case(linux_based: Any) -> Any:
    """What a case of TRex's suites saw."""

    def run_case(name: str) -> Any:
        seen = linux_based("stack_case", name)
        assert seen["stack"] == "linux_based"
        return seen["seen"]

    return run_case


@pytest.mark.parametrize("name", ["ns_add_remove", "shared_ns_add_remove"])
def test_nodes_come_and_go_and_what_they_sent_is_counted(case: Any, name: str) -> None:
    seen = case(name)
    assert seen.pop("sent_to_groups") > 0
    assert seen == {"added": ["00:01:02:03:04:05"], "removed": [], "counted": {}}


@pytest.mark.parametrize("name", ["ping_to_ns", "ping_with_vlan", "ping_to_shared_ns"])
def test_a_port_pings_nodes_of_the_other(case: Any, name: str) -> None:
    assert case(name) == [True] * 5


@pytest.mark.parametrize("name", ["many_ns", "many_shared_ns"])
def test_a_hundred_nodes_are_there(case: Any, name: str) -> None:
    assert case(name) == 100


def test_nodes_of_a_shared_namespace_tell_what_they_have(case: Any) -> None:
    vlan = {"tags": [22], "tpids": [0x8100]}
    assert case("get_shared_ns_node_info") == ["00:01:02:03:04:05", "1.1.1.3", 24, True, vlan]
    two = {"tags": [22, 23], "tpids": [0x8100, 0x8100]}
    assert case("setting_shared_ns_vlans") == [vlan, two]


def test_ports_answer_ipv6_when_it_is_on(case: Any) -> None:
    seen = case("ipv6")
    assert seen["False"] == {"all": ["timeout"], "strangers": ["timeout"], "scanned": []}
    assert seen["True"]["all"] == ["success"]
    assert len(seen["True"]["scanned"]) == 1
    # The kernel may say that it has no route to them.
    assert "success" not in seen["True"]["strangers"]


def test_the_kernel_has_the_addresses_of_ports(linux_based: Any) -> None:
    seen = linux_based("port_namespaces")
    assert seen["resolved"] == [True, True]
    for port, layers in enumerate(seen["layers"]):
        assert layers["ipv4"] == {
            "state": "resolved", "src": f"192.0.2.{port + 1}", "dst": f"192.0.2.{2 - port}",
        }  # fmt: skip
        assert layers["ipv6"] == {"enabled": True, "src": f"2001:db8::{port + 1}"}
    pings = ("client_pings", "kernel_pings", "kernel_pings_ipv6", "pinged_in_vlan", "pinged_after_removal")
    assert {name: seen[name] for name in pings} == dict.fromkeys(pings, True)
    assert seen["listed"] == [[], []], "the port itself is no node"
    assert "192.0.2.1" not in seen["left"]


def test_namespaces_of_ports_end_with_the_server() -> None:
    def names() -> set[str]:
        shown = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
        return {line.split()[0] for line in shown.splitlines()}

    with LocalServer(ports=["memory"], options=["--stack", "linux_based"]) as server:
        own = f"allosaur-{server.pid}-"
        with server.client() as client:
            client.reset()
            client.set_service_mode()
            client.conf_ipv6(0, True, "2001:db8::1")
            (node,) = client.get_ns_nodes(0)
            assert node["is_port"]
            assert any(name.startswith(own) for name in names())
    assert not any(name.startswith(own) for name in names())
