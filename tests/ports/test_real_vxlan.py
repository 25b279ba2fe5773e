"""Flows and streams in VXLAN between us and the vxlan device of the Linux kernel: all is right, both ways."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur import (
    STLVM,
    ASTFTopology,
    STLClient,
    STLError,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLStream,
    STLTXSingleBurst,
    TopoGW,
    TopoVIF,
)
from allosaur.api import IP, UDP, Ether, IPv6
from allosaur.server import LocalServer

VNI = 100
#: The address of the host inside of the first tunnel.
INSIDE = "172.20.0.2"
SERVER = "48.0.0.1"
REQUEST_BYTES_MIN = 40


class Tunnel:
    """A vxlan device of a host, whose other end is our port; whom the host does not know is behind it."""

    def __init__(self, host: Any, number: int = 0) -> None:
        self.host, self.vni, self._name = host, VNI + number, f"vx{number}"
        name, ours = self._name, host.network.mac(None, host.near)
        ends = ["local", host.address, "remote", host.port_address, "dstport", "4789", "dev", host.far]
        host.run("ip", "link", "add", name, "type", "vxlan", "id", str(self.vni), *ends)
        host.run("ethtool", "-K", name, "tx", "off", "gso", "off", "tso", "off", "gro", "off")
        host.network.silence(host.namespace, name)
        host.run("ip", "link", "set", name, "up")
        inside, our_inside = (f"172.{20 + number}.0.{end}" for end in (2, 1))
        host.run("ip", "address", "add", f"{inside}/16", "dev", name)
        host.run("ip", "neighbor", "add", our_inside, "lladdr", ours, "dev", name)
        # The second has a part of the clients.
        for clients_or_servers in ("16.0.1.0/24",) if number else ("16.0.0.0/8", "48.0.0.0/8"):
            host.run("ip", "route", "add", clients_or_servers, "via", our_inside, "dev", name)
        # The kernel resolves whom its frames go to; the host of our port answers for its address.
        self.mac = host.network.mac(host.namespace, name)

    def forward(self) -> None:
        """Let the host forward packets, from its tunnel into its tunnel."""
        host = self.host
        for path in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            host.write(path, "1")
        for which in ("all", "vx0"):
            host.write(f"ipv4/conf/{which}/send_redirects", "0")
            host.write(f"ipv4/conf/{which}/rp_filter", "0")
        ours = host.network.mac(None, host.near)
        host.write("ipv6/conf/vx0/disable_ipv6", "0")
        host.run("ip", "address", "add", "2001:db8:20::2/64", "dev", "vx0", "nodad")
        host.run("ip", "neighbor", "add", "2001:db8:20::1", "lladdr", ours, "dev", "vx0")
        for network in ("2001:db8:16::/48", "2001:db8:48::/48"):
            host.run("ip", "route", "add", network, "via", "2001:db8:20::1", "dev", "vx0")

    def received(self) -> int:
        """Packets that the host took out of the tunnel."""
        return self._counter("rx_packets")

    def received_wrong(self) -> int:
        """Those of them that were wrong."""
        return self._counter("rx_errors") + self._counter("rx_dropped")

    def _counter(self, name: str) -> int:
        return int(self.host.run("cat", f"/sys/class/net/{self._name}/statistics/{name}"))


@pytest.fixture
def tunnel(network: Any, real: ModuleType) -> Tunnel:
    return Tunnel(real.Host(network, "web", offloads=False))


@pytest.mark.parametrize("cores", [1, 2])
def test_our_clients_ask_nginx_in_a_tunnel(
    tunnel: Tunnel, real: ModuleType, talks: ModuleType, tmp_path: Path, cores: int
) -> None:
    host, connections = tunnel.host, 200
    body = real.body(20_000)
    with real.Nginx(host, tmp_path, {"file": body}) as nginx:
        response = nginx.response_bytes("file")
        profile = talks.profile(
            talks.asks(talks.get("file"), response),
            talks.answers(1, b"-"),
            servers=(INSIDE, INSIDE),
            cps=200,
            limit=connections,
        )
        with talks.generator([host.near, "dummy"], [host], cores) as client:
            client.set_vxlan([0], VNI, inner_mac=tunnel.mac)
            clients = talks.run(client, profile)["client"]
    assert clients["tcps_connects"] == clients["tcps_closed"] == connections
    assert clients["tcps_rcvbyte"] == connections * response
    assert len(nginx.requests()) == connections + 1, "one was ours, to see how long a response is"
    assert clients["err_tunnel_network"] == clients["err_l4_cs"] == 0


def test_clients_are_in_several_networks_and_each_gets_its_answers(
    tunnel: Tunnel, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    host, connections = tunnel.host, 200
    second = Tunnel(host, 1)
    for which in ("all", "vx0", "vx1"):
        host.write(f"ipv4/conf/{which}/rp_filter", "0")
    body = real.body(5_000)
    with real.Nginx(host, tmp_path, {"file": body}) as nginx:
        response = nginx.response_bytes("file")
        profile = talks.profile(
            talks.asks(talks.get("file"), response),
            talks.answers(1, b"-"),
            clients=("16.0.0.156", "16.0.1.99"),
            servers=(INSIDE, INSIDE),
            cps=500,
            limit=connections,
        )
        topology = ASTFTopology(
            vifs=[
                TopoVIF("0.1", "02:00:00:00:01:01", vxlan=tunnel.vni),
                TopoVIF("0.2", "02:00:00:00:01:02", vxlan={"vni": second.vni, "remote": host.address}),
            ],
            gws=[
                TopoGW("0.1", "16.0.0.1", "16.0.0.255", tunnel.mac),
                TopoGW("0.2", "16.0.1.0", "16.0.1.255", second.mac),
            ],
        )
        with talks.generator([host.near, "dummy"], [host]) as client:
            client.topo_load(topology)
            with pytest.raises(STLError, match=r"vifs\[0\].vxlan.*set_vxlan"):
                client.topo_resolve()
            client.set_vxlan([0], VNI, any_vni=True)
            client.topo_resolve()
            clients = talks.run(client, profile)["client"]
            assert clients["tcps_connects"] == clients["tcps_closed"] == connections
            assert clients["tcps_rcvbyte"] == connections * response
            # The topology needs its tunnel as long as it is there.
            client.set_vxlan([0], VNI)
            with pytest.raises(STLError, match=r"vifs\[1\].vxlan vni is 101.*any_vni"):
                talks.start(client, profile)
    assert min(tunnel.received(), second.received()) > connections, "both carried what was theirs"


@pytest.mark.parametrize("cores", [1, 2])
def test_curl_asks_our_servers_in_a_tunnel_and_another_network_is_counted(
    tunnel: Tunnel, real: ModuleType, talks: ModuleType, cores: int
) -> None:
    host, body = tunnel.host, real.body(500_000)
    server = talks.answers(REQUEST_BYTES_MIN, talks.answer(body))
    profile = talks.profile(talks.asks(b"-", 1), server)
    with talks.generator(["dummy", host.near], [host], cores) as client:
        client.set_vxlan([1], VNI)
        talks.start(client, profile)
        assert real.curl(host, f"http://{SERVER}/") == (real.sha256(body), len(body))
        servers = talks.finished(client, 1)["server"]
        assert (servers["tcps_accepts"], servers["err_tunnel_network"]) == (1, 0)

        client.set_vxlan([1], VNI + 1)
        talks.start(client, profile)
        asking = host.start("curl", "--silent", "--max-time", "30", f"http://{SERVER}/")
        talks.wait_until(lambda: talks.counted(client)["server"]["err_tunnel_network"] > 0)
        asking.kill()
        asking.wait()
        assert talks.counted(client)["server"]["tcps_accepts"] == 0
        client.stop()

        # A server in any network answers in that of whoever asked.
        client.wait_on_traffic(timeout=talks.PATIENCE_S)
        client.set_vxlan([1], VNI + 1, any_vni=True)
        talks.start(client, profile)
        assert real.curl(host, f"http://{SERVER}/") == (real.sha256(body), len(body))
        client.stop()
        client.wait_on_traffic(timeout=talks.PATIENCE_S)


@contextmanager
def streams(host: Any) -> Iterator[STLClient]:
    """A stateless server whose port 0 is before the host, and in its tunnel."""
    with LocalServer(ports=[host.near, "dummy"]) as server, server.client() as client:
        client.reset(ports=[0])
        client.set_service_mode([0], True)
        client.set_l3_mode(0, host.port_address, host.address)
        client.set_service_mode([0], False)
        yield client


def through_the_host(packets: int, pg_id: int, latency: bool = False, size: int = 200) -> STLStream:
    """From clients behind our port to servers behind it: the host forwards them, and changes the TTL."""
    vm = STLVM()
    vm.var(name="client", min_value="16.0.0.1", max_value="16.0.0.200", size=4, op="inc")
    vm.write(fv_name="client", pkt_offset="IP.src")
    vm.var(name="bytes", min_value=100, max_value=size, size=2, op="random")
    vm.trim(fv_name="bytes")
    vm.write(fv_name="bytes", pkt_offset="IP.len", add_val=-14)
    vm.write(fv_name="bytes", pkt_offset="UDP.len", add_val=-34)
    vm.fix_chksum_hw(l3_offset="IP", l4_offset="UDP", l4_type=11)
    packet = Ether() / IP(src="16.0.0.1", dst=SERVER) / UDP(sport=1025, dport=9)
    packet = packet / bytes(size - len(packet))
    stats = STLFlowLatencyStats(pg_id=pg_id) if latency else STLFlowStats(pg_id=pg_id)
    return STLStream(
        packet=STLPktBuilder(pkt=packet, vm=vm),
        mode=STLTXSingleBurst(total_pkts=packets, pps=2_000),
        flow_stats=stats,
    )


def counted(talks: ModuleType, client: STLClient, pg_id: int, packets: int) -> dict[str, Any]:
    """What was counted of a group, once so many of its packets have come back."""

    talks.wait_until(
        lambda: client.get_pgid_stats([pg_id])["flow_stats"][pg_id]["rx_pkts"]["total"] >= packets
    )
    return dict(client.get_pgid_stats([pg_id]))


def test_streams_go_through_a_router_in_a_tunnel_and_are_counted_and_measured(
    tunnel: Tunnel, talks: ModuleType
) -> None:
    packets = 2_000
    tunnel.forward()
    with streams(tunnel.host) as client:
        client.set_vxlan([0], VNI, inner_mac=tunnel.mac)
        client.add_streams([through_the_host(packets, 1), through_the_host(500, 2, latency=True)], ports=[0])
        client.clear_stats()
        client.start(ports=[0], core_mask=[1])
        client.wait_on_traffic(ports=[0])
        for pg_id, sent in ((1, packets), (2, 500)):
            found = counted(talks, client, pg_id, sent)
            flow = found["flow_stats"][pg_id]
            assert flow["tx_pkts"]["total"] == flow["rx_pkts"]["total"] == sent
            # What the tunnel takes counts, too: so many bytes were on the wire, both ways.
            assert flow["tx_bytes"]["total"] == flow["rx_bytes"]["total"]
        measured = found["latency"][2]
        assert measured["err_cntrs"]["dropped"] == measured["err_cntrs"]["out_of_order"] == 0
        assert measured["latency"]["total_min"] > 0
        errors = client.get_xstats(0)
        assert errors["rx_tunnel_network_errors"] == errors["rx_tunnel_header_errors"] == 0
    assert tunnel.received() >= packets + 500
    assert tunnel.received_wrong() == 0


def test_frames_of_another_network_are_counted_and_not_measured(tunnel: Tunnel, talks: ModuleType) -> None:
    host, packets = tunnel.host, 100
    tunnel.forward()
    with streams(host) as client:
        # We send as network 100, where the host is, but say that we are in the next one.
        client.set_vxlan([0], VNI + 1, inner_mac=tunnel.mac)
        client.add_streams(through_the_host(packets, 1), ports=[0])
        asking = host.start("curl", "--silent", "--max-time", "30", f"http://{SERVER}/")
        talks.wait_until(lambda: client.get_xstats(0)["rx_tunnel_network_errors"] > 0)
        asking.kill()
        asking.wait()
        assert client.get_xstats(0)["rx_tunnel_network_errors"] > 0
        client.start(ports=[0])
        client.wait_on_traffic(ports=[0])
        assert tunnel.received() == 0, "the host is not in that network"


def test_ipv6_streams_in_a_tunnel_come_back(tunnel: Tunnel, talks: ModuleType) -> None:
    host, packets = tunnel.host, 200
    tunnel.forward()
    packet = (
        Ether() / IPv6(src="2001:db8:16::1", dst="2001:db8:48::1") / UDP(sport=1025, dport=9) / bytes(100)
    )
    with streams(host) as client:
        client.set_vxlan([0], VNI, inner_mac=tunnel.mac)
        burst = STLTXSingleBurst(total_pkts=packets, pps=2_000)
        stats = STLFlowStats(pg_id=5)
        client.add_streams(
            STLStream(packet=STLPktBuilder(pkt=packet), mode=burst, flow_stats=stats), ports=[0]
        )
        client.start(ports=[0])
        client.wait_on_traffic(ports=[0])
        flow = counted(talks, client, 5, packets)["flow_stats"][5]
        assert flow["rx_pkts"]["total"] == packets


def test_streams_that_do_not_fit_a_tunnel_are_refused_by_name(tunnel: Tunnel) -> None:
    with streams(tunnel.host) as client:
        client.set_vxlan([0], VNI, inner_mac=tunnel.mac)
        burst = STLTXSingleBurst(total_pkts=1, pps=1_000)
        within = Ether() / IP(dst=SERVER) / UDP(dport=4789) / bytes(100)
        for packet, words in [
            (bytes(1_500), ["stream", "50 bytes of its tunnel (vxlan)", "1550 bytes", "MTU"]),
            (bytes(within), ["stream", "VXLAN by itself", "set_vxlan"]),
        ]:
            client.remove_all_streams([0])
            builder = STLPktBuilder(pkt_buffer=packet)
            client.add_streams(STLStream(packet=builder, mode=burst), ports=[0])
            with pytest.raises(STLError) as error:
                client.start(ports=[0])
            assert all(word in str(error.value) for word in words), error.value
        client.set_vlan([0], [7, 8])
        client.remove_all_streams([0])
        client.add_streams(STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=burst), ports=[0])
        with pytest.raises(STLError, match=r"vlan has 2 tags.*set_vlan"):
            client.start(ports=[0])


def test_wrong_tunnels_are_refused_by_name(tunnel: Tunnel, talks: ModuleType) -> None:
    with talks.generator(["dummy", "dummy"]) as client:
        for options, words in [
            ({"vni": 1 << 24}, ["vxlan", "16777215"]),
            ({"vni": 1}, ["vxlan.local", "set_l3"]),
            ({"vni": 1, "local": "192.0.2.1"}, ["vxlan.remote", "set_l3"]),
            ({"vni": 1, "local": "192.0.2.1", "remote": "192.0.2.1"}, ["vxlan.remote", "other"]),
            ({"vni": 1, "remote": "somewhere"}, ["vxlan", "IPv4"]),
        ]:
            with pytest.raises(STLError) as error:
                client.set_vxlan([0], **options)
            assert all(word in str(error.value) for word in words), error.value
