"""What is wrong, from Python to a server: errors name the thing, and what was there stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from allosaur import (
    EMUClient,
    EMUClientKey,
    EMUClientObj,
    EMUNamespaceKey,
    EMUNamespaceObj,
    EMUProfile,
    Ipv4,
    Mac,
    STLError,
    STLRpcError,
)
from allosaur.server import LocalServer

KEY = EMUNamespaceKey(0)
MAC, IPV4 = Mac("02:00:00:70:00:01"), Ipv4("16.0.0.1")
GATEWAY = "16.0.0.254"


def host(number: int, **more: Any) -> EMUClientObj:
    return EMUClientObj(MAC[number], **{"ipv4": IPV4[number], "ipv4_dg": GATEWAY, **more})


def key(number: int) -> EMUClientKey:
    return EMUClientKey(KEY, MAC[number])


@pytest.fixture
def client(emulating: LocalServer) -> Iterator[EMUClient]:
    """A client of a server with a namespace of three hosts."""
    with EMUClient(server=emulating.host, sync_port=emulating.emu_port or 0) as client:
        plugs: dict[str, Any] = {"arp": {}, "icmp": {}}
        hosts = [host(number) for number in range(3)]
        client.load_profile(EMUProfile(EMUNamespaceObj(KEY, hosts, plugs=plugs, def_c_plugs=plugs)))
        yield client


def macs(client: EMUClient) -> list[str]:
    return [one.mac.S() for one in client.get_all_clients_for_ns(KEY)]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (host(9, ipv4=IPV4[1]), r"IPv4 \[16 0 0 2\] already exist"),
        (host(1, ipv4=IPV4[9]), "MAC 02:00:00:70:00:02 already exist"),
        (host(9, plugs={"arpp": {}}), "arpp"),
        (host(9, plugs={"arp": {"timers": 5}}), 'unknown field "timers": is it "timer"'),
        (host(9, plugs={"dhcpsrv": {"pools": 5}}), "Ipv4PoolParams"),
        (host(9, plugs={"dns": {"dns_server_ip": "nowhere"}}), "nowhere"),
        (host(9, ipv4_mtu=70_000), "70000"),
    ],
)
def test_a_client_that_is_wrong_is_refused(client: EMUClient, bad: EMUClientObj, words: str) -> None:
    before = macs(client)
    with pytest.raises(STLRpcError, match=words):
        client.add_clients(KEY, bad)
    client.add_clients(KEY, host(20))
    assert set(before) <= set(macs(client)) and MAC[20].S() in macs(client)
    assert client.icmp.get_counters(KEY) is not None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: EMUNamespaceKey(0, tci=4096), "tci.*4095"),
        (lambda: EMUNamespaceKey(0, tci=5, tpid=0x1_0000), "tpid.*65535"),
        (lambda: EMUNamespaceKey(0, tci=[1, 2, 3]), "tci.*at most 2"),
        (lambda: EMUClientObj("01:00:5e:00:00:01"), "of a single host, such as '00:00:5e:00:00:01'"),
        (lambda: EMUClientObj(MAC, ipv4_gw=GATEWAY), "ipv4_gw.*is it 'ipv4_dg'"),
        (lambda: EMUNamespaceObj(KEY, [host(1), host(1)]), "another MAC"),
    ],
)
def test_what_is_wrong_by_itself_is_never_sent(make: Any, words: str) -> None:
    with pytest.raises(STLError, match=words):
        make()


def test_a_namespace_that_has_clients_or_is_there_or_is_not(client: EMUClient) -> None:
    with pytest.raises(STLRpcError, match="active clients"):
        client.remove_ns(KEY)
    with pytest.raises(STLRpcError, match="there is a valid namespace"):
        client.add_ns(EMUNamespaceObj(KEY))
    with pytest.raises(STLRpcError, match="no valid namespace"):
        client.add_clients(EMUNamespaceKey(1), host(9))
    assert len(macs(client)) == 3


def test_a_gateway_that_never_answers(client: EMUClient) -> None:
    assert client.icmp.start_ping(key(0), amount=1, pace=1, dst=IPV4[200].V(), timeout=1) is not None
    info = client.get_info_clients([key(0)])[0]
    assert info["mac"] == MAC[0].S() and not (info["dgw"] or {}).get("resolve")


def test_counters_of_a_client_that_went(client: EMUClient) -> None:
    client.add_clients(KEY, host(9, plugs={"lldp": {}}))
    assert client.lldp.get_counters(key(9), verbose=False)["lldp"]["pktTx"] >= 1
    client.remove_clients([key(9)])
    with pytest.raises(STLRpcError, match="client"):
        client.lldp.get_counters(key(9))
    with pytest.raises(STLRpcError, match="does exits"):
        client.remove_clients([key(9)])


def test_a_reader_across_a_change(client: EMUClient) -> None:
    pages = client.yield_clients(KEY, 1)
    next(pages)
    client.remove_clients([key(1)])
    with pytest.raises(STLRpcError, match="interupted"):
        list(pages)
    assert macs(client) == [MAC[0].S(), MAC[2].S()]


def test_a_program_that_cannot_run(client: EMUClient) -> None:
    program = {"commands": [{"name": "tx", "buf_index": 7}]}
    template = {"client_template": {"program_index": 0}, "server_template": {"program_index": 0}}
    appsim = {"buf_list": ["eA=="], "program_list": [program], "templates": [template], "tunable_list": []}
    other = EMUNamespaceKey(1)
    with pytest.raises(STLRpcError, match=r"appsim.*buffer index is bigger than 1"):
        client.add_ns(EMUNamespaceObj(other, plugs={"appsim": appsim}))
    assert len(macs(client)) == 3
