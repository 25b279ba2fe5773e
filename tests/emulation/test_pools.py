"""Flows of emulated clients through a Linux router with a NAT: leased, resolved and logged in before.

``ALLOSAUR_POOL_CLIENTS`` is how many clients take part, 200 unless it is set.
"""

from __future__ import annotations

import os
from ipaddress import IPv4Address
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur import ASTFIPGenDist, EMUNamespaceKey, STLError
from allosaur.server import LocalServer

COUNT = int(os.environ.get("ALLOSAUR_POOL_CLIENTS", "200"))
EACH = 3 if COUNT <= 5_000 else 1
"""Connections of each client. A NAT has 64,512 ports; with half of them taken, Linux forgets closed ones."""
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"*" * 5_000
NAMESPACE = {"vport": 0}
LEASES = "leases"
DHCP = {"timerd": 1, "timero": 1}
LEASED = {"arp": {}, "dhcp": DHCP}
HOSTAPD = """interface={link}
driver=wired
ieee8021x=1
eap_server=1
eap_user_file={folder}/users
use_pae_group_addr=0
"""


@pytest.fixture
def gateway(network: Any, doors: Any, daemons: ModuleType, devices: Any, access: ModuleType) -> Any:
    del devices  # They skip where there is no NAT.
    return access.Access(network, daemons.Host(network, doors, "gateway"))


def dnsmasq(host: Any, folder: Path) -> Any:
    """dnsmasq on a host, with leases for everybody."""
    words = [
        *("--keep-in-foreground", "--log-facility=-", "--conf-file=/dev/null", "--user=root", "--pid-file="),
        *("--no-resolv", "--no-hosts", "--no-ping", "--bind-interfaces", "--dhcp-authoritative", "--port=0"),
        f"--interface={host.link}",
        f"--dhcp-lease-max={COUNT + 100}",
        f"--dhcp-leasefile={folder / LEASES}",
        "--dhcp-range=10.1.0.1,10.1.199.255,255.255.0.0,1h",
    ]
    return host.daemon(folder, "started", "dnsmasq", *words)


def leases(folder: Path) -> dict[str, bytes]:
    """dnsmasq's own table: the addresses that MAC addresses have."""
    lines = [line.split() for line in (folder / LEASES).read_text().splitlines()]
    return {mac: IPv4Address(address).packed for _, mac, address, *_ in lines}


def http(talks: ModuleType, access: ModuleType, pool: ASTFIPGenDist, limit: int, **others: Any) -> Any:
    """So many connections, in seconds, each with a request and a response."""
    request = talks.get("file")
    programs = talks.asks(request, len(RESPONSE)), talks.answers(len(request), RESPONSE)
    servers = (access.SERVER, access.SERVER)
    rate = max(300, limit // 30)
    return talks.profile(*programs, clients=pool, servers=servers, cps=rate, limit=limit, **others)


def assert_all_went_well(talks: ModuleType, traffic: Any, connections: int) -> None:
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    client, server = traffic["client"], traffic["server"]
    assert client["tcps_connects"] == server["tcps_accepts"] == connections
    assert client["tcps_closed"] == server["tcps_closed"] == connections
    assert client["tcps_rcvbyte"] == connections * len(RESPONSE)


def test_leased_clients_pass_a_nat(
    gateway: Any, doors: Any, daemons: ModuleType, access: ModuleType, talks: ModuleType, memory: Path
) -> None:
    numbers = daemons.numbers(COUNT)
    with (
        dnsmasq(gateway.host, memory),
        access.flows_and_clients(gateway, doors, cores=2) as (client, door),
    ):
        segment = daemons.Segment(door, doors, arp={})
        everybody = ASTFIPGenDist(emulation=NAMESPACE, ready_min=COUNT)
        profile = http(talks, access, everybody, COUNT * EACH)
        client.load_profile(profile)
        with pytest.raises(STLError, match="port 0 without VLAN has no emulated clients: add some"):
            client.start()
        segment.add(numbers, LEASED)
        addresses = segment.await_addresses(numbers)
        segment.await_gateways(numbers)
        segment.agree(lambda: leases(memory), addresses)
        assert len(set(addresses.values())) == COUNT
        gateway.forget_neighbors()
        traffic = talks.run(client, profile)
        assert client.get_flow_rates()["hosts"] == COUNT
        assert_all_went_well(talks, traffic, COUNT * EACH)
        # The router saw each client, from the address that it leased, as often as all others.
        found = {str(IPv4Address(address)): mac for mac, address in addresses.items()}
        assert gateway.connections() == dict.fromkeys(found, EACH)
        # Its neighbors are the clients, who answered for themselves while their flows went on.
        known = gateway.neighbors("-4")
        assert {address: known.get(address) for address in found} == found
        assert leases(memory) == addresses


def test_clients_with_addresses_of_a_router_pass_a_nat_of_ipv6(
    gateway: Any, doors: Any, daemons: ModuleType, access: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    numbers = daemons.numbers(COUNT)
    config = tmp_path / "radvd.conf"
    config.write_text(
        f"interface {gateway.host.link} {{ AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4;"
        " prefix 2001:db8:1::/64 { AdvOnLink on; AdvAutonomous on; }; };\n"
    )
    words = ["--nodaemon", "--logmethod=stderr", f"--config={config}", f"--pidfile={tmp_path}/radvd.pid"]
    with (
        gateway.host.daemon(tmp_path, "version .* started", "radvd", *words),
        access.flows_and_clients(gateway, doors) as (client, door),
    ):
        segment = daemons.Segment(door, doors)
        segment.add(numbers, {"ipv6": {}})
        addresses = access.texts(segment.await_addresses(numbers, "ipv6_slaac"))
        pool = ASTFIPGenDist(emulation=NAMESPACE, ready_min=COUNT)
        prefixes = ("::", access.SERVER_PREFIX)
        traffic = talks.run(client, http(talks, access, pool, COUNT, prefixes=prefixes))
        assert_all_went_well(talks, traffic, COUNT)
        assert gateway.connections("ipv6") == dict.fromkeys(addresses.values(), 1)
        known = gateway.neighbors("-6")
        assert {mac: mac for mac in addresses} == {mac: known.get(one) for mac, one in addresses.items()}


def test_who_is_not_logged_in_sends_nothing(
    gateway: Any, doors: Any, daemons: ModuleType, access: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    numbers = daemons.numbers(50)
    wrong = [number for number in numbers if number % 5 == 0]
    (tmp_path / "users").write_text('"alice" MD5 "secret"\n')
    (tmp_path / "hostapd.conf").write_text(HOSTAPD.format(link=gateway.host.link, folder=tmp_path))

    def plugins(number: int) -> dict[str, Any]:
        password = "wrong" if number in wrong else "secret"
        login = {"user": "alice", "password": password, "timeo_idle": 5, "max_start": 20}
        return {"arp": {}, "dot1x": login}

    with (
        gateway.host.daemon(tmp_path, "AP-ENABLED", "hostapd", f"{tmp_path}/hostapd.conf"),
        access.flows_and_clients(gateway, doors) as (client, door),
    ):
        segment = daemons.Segment(door, doors)
        static = {"ipv4_dg": [10, 1, 255, 254]}
        segment.add(numbers, plugins, ipv4=lambda number: [10, 1, 7, number], **static)
        segment.await_gateways(numbers)
        segment.await_each(
            numbers,
            lambda some: [
                info["state"] in (4, 5)
                for info in door.call("dot1x_client_info", tun=segment.tunnel, macs=segment.macs(some))
            ],
        )
        everybody = ASTFIPGenDist(emulation=NAMESPACE, ready_min=50)
        client.load_profile(http(talks, access, everybody, 80))
        problem = r"40 of 50 emulated clients .* \(10 of them without a login by 802.1X\): wait until"
        with pytest.raises(STLError, match=problem):
            client.start()
        ready = ASTFIPGenDist(emulation=NAMESPACE)
        traffic = talks.run(client, http(talks, access, ready, 80))
        assert_all_went_well(talks, traffic, 80)
        senders = [f"10.1.7.{number}" for number in numbers if number not in wrong]
        assert gateway.connections() == dict.fromkeys(senders, 2)


def test_clients_of_a_vlan_send_with_its_tag(doors: Any, daemons: ModuleType, talks: ModuleType) -> None:
    numbers = daemons.numbers(20)
    with (
        LocalServer(stateful=True, emu=True) as server,
        doors.Door(server.emu_port) as door,
        server.client() as client,
    ):
        client.reset()
        segment = daemons.Segment(door, doors)
        segment.tunnel = door.add_namespace(0, [100])
        gateway = bytes.fromhex(client.get_port_attr(1)["src_mac"].replace(":", ""))
        fields = {"ipv4_dg": [10, 9, 0, 1], "ipv4_force_dg": True, "ipv4_force_mac": list(gateway)}
        segment.add(numbers, {"arp": {}}, ipv4=lambda number: [10, 9, 7, number], **fields)
        pool = ASTFIPGenDist(emulation=EMUNamespaceKey(0, tci=[100]), ready_min=20)
        profile = talks.profile(talks.asks(b"ask", 6), talks.answers(3, b"answer"), pool, limit=60)
        client.set_service_mode(enabled=True)
        tcp = "tcp or (vlan and tcp)"
        capture = client.start_capture(rx_ports=[0, 1], limit=10_000, bpf_filter=tcp)["id"]
        client.load_profile(profile)
        client.start()
        client.wait_on_traffic(timeout=talks.PATIENCE_S)
        traffic = talks.counted(client)
        seen: list[dict[str, Any]] = []
        client.stop_capture(capture, seen)
    assert traffic["client"]["tcps_connects"] == traffic["server"]["tcps_closed"] == 60
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    macs = {bytes(doors.mac(number)) for number in numbers}
    frames = [packet["binary"] for packet in seen]
    # Both ways, all frames have the tag, and the MAC address of a client at one end.
    assert {frame[12:16] for frame in frames} == {b"\x81\x00\x00\x64"}
    assert {frame[6:12] for frame in frames if frame[:6] == gateway} == macs
    assert {frame[:6] for frame in frames if frame[6:12] == gateway} == macs


def test_a_namespace_that_is_gone_is_missed_at_the_next_start(
    gateway: Any, doors: Any, daemons: ModuleType, access: ModuleType, talks: ModuleType
) -> None:
    numbers = daemons.numbers(3)
    with access.flows_and_clients(gateway, doors) as (client, door):
        segment = daemons.Segment(door, doors)
        segment.add(numbers, {"arp": {}}, ipv4=lambda number: [10, 1, 7, number], ipv4_dg=[10, 1, 255, 254])
        segment.await_gateways(numbers)
        profile = http(talks, access, ASTFIPGenDist(emulation=NAMESPACE), 9)
        assert_all_went_well(talks, talks.run(client, profile), 9)
        segment.remove(numbers)
        door.call("ctx_remove", tunnels=[segment.tunnel])
        with pytest.raises(STLError, match="no clients are emulated at port 0 without VLAN: load them first"):
            client.start()


def test_a_server_without_emulated_clients_says_how_to_have_some(network: Any, talks: ModuleType) -> None:
    near, far = network.veth()
    with talks.generator([f"af_packet:{near}", f"af_packet:{far}"]) as client:
        client.load_profile(
            talks.profile(
                talks.asks(b"ask", 6),
                talks.answers(3, b"answer"),
                clients=ASTFIPGenDist(emulation=NAMESPACE),
            )
        )
        with pytest.raises(STLError, match="this server emulates no clients: start it with --emu"):
            client.start()
