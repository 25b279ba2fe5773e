"""The main port answers the commands of emulated clients, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from allosaur import STLClient, STLError
from allosaur.server import LocalServer

CLIENTS = 100
"""More than are added at a time."""


@pytest.fixture
def client(emulating: LocalServer) -> Iterator[STLClient]:
    with STLClient(server="127.0.0.1", sync_port=emulating.rpc_port, async_port=emulating.pub_port) as client:
        yield client


def mac(number: int) -> list[int]:
    return [2, 0, 0, 0, 0, number]


def test_clients_are_added_and_asked_by_the_main_port(client: STLClient, door: Any) -> None:
    call = client._connection.session().rpc.call
    tun = {"vport": 0}
    assert call("ctx_add", tunnels=[{**tun, "plugs": {"arp": {}}}]) is True
    clients = [
        {"mac": mac(n), "ipv4": [10, 0, 0, n], "ipv4_dg": [10, 0, 1, 1], "plugs": {"arp": {}}}
        for n in range(1, CLIENTS + 1)
    ]
    assert call("ctx_client_add", tun=tun, clients=clients) is True
    assert call("ctx_get_info", tunnels=[tun])[0]["active_clients"] == CLIENTS
    page = call("ctx_client_iter", tun=tun, reset=True, count=255)
    assert page["data"] == [mac(n) for n in range(1, CLIENTS + 1)]
    assert call("arp_ns_get_cfg", tun=tun) == {"enable": True}
    # Both ports speak of the same clients.
    assert door.call("ctx_get_info", tunnels=[tun]) == call("ctx_get_info", tunnels=[tun])
    monitor = call("ctx_resource_monitor_get")
    assert monitor["Resource monitor"]["rss"] > 0
    assert call("ctx_client_remove", tun=tun, macs=[mac(n) for n in range(1, CLIENTS + 1)]) is True
    assert call("ctx_get_info", tunnels=[tun])[0]["active_clients"] == 0


def test_a_part_that_is_refused_ends_a_long_call(client: STLClient) -> None:
    call = client._connection.session().rpc.call
    tun = {"vport": 0}
    call("ctx_add", tunnels=[tun])
    clients = [{"mac": mac(n)} for n in [*range(1, 41), 40, *range(41, 81)]]
    with pytest.raises(STLError, match="same MAC 02:00:00:00:00:28 already exist"):
        call("ctx_client_add", tun=tun, clients=clients)
    assert call("ctx_get_info", tunnels=[tun])[0]["active_clients"] == 40


def test_errors_and_names_are_those_of_the_main_port(client: STLClient) -> None:
    rpc = client._connection.session().rpc
    with pytest.raises(STLError, match="no valid namespace"):
        rpc.call("arp_ns_get_cfg", tun={"vport": 9})
    assert rpc.call("get_version")["mode"] != "emulation"
    names = rpc.call("get_supported_cmds")
    assert {"ctx_add", "ctx_client_add", "arp_ns_iter"} <= set(names)
    assert len(names) == len(set(names))


def test_a_server_without_them_says_how_to_get_them(server: LocalServer) -> None:
    with STLClient(server="127.0.0.1", sync_port=server.rpc_port, async_port=server.pub_port) as client:
        assert "ctx_add" not in client._connection.session().rpc.call("get_supported_cmds")
        with pytest.raises(STLError, match="start it with --emu"):
            client._connection.session().rpc.call("ctx_add", tunnels=[{"vport": 0}])
