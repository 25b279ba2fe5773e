"""Flows in VXLAN between us and the vxlan device of the Linux kernel: every byte is right, both ways."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur import STLError

VNI = 100
#: Addresses of the host and of our port inside of the tunnel.
INSIDE, OUR_INSIDE = "172.20.0.2", "172.20.0.1"
SERVER = "48.0.0.1"
REQUEST_BYTES_MIN = 40


class Tunnel:
    """A vxlan device of a host, whose other end is our port; whom the host does not know is behind it."""

    def __init__(self, host: Any) -> None:
        self.host = host
        name, ours = "vx0", host.network.mac(None, host.near)
        ends = ["local", host.address, "remote", host.port_address, "dstport", "4789", "dev", host.far]
        host.run("ip", "link", "add", name, "type", "vxlan", "id", str(VNI), *ends)
        host.run("ethtool", "-K", name, "tx", "off", "gso", "off", "tso", "off", "gro", "off")
        host.network.silence(host.namespace, name)
        host.run("ip", "link", "set", name, "up")
        host.run("ip", "address", "add", f"{INSIDE}/16", "dev", name)
        host.run("ip", "neighbor", "add", OUR_INSIDE, "lladdr", ours, "dev", name)
        for clients_or_servers in ("16.0.0.0/8", "48.0.0.0/8"):
            host.run("ip", "route", "add", clients_or_servers, "via", OUR_INSIDE, "dev", name)
        # The kernel resolves whom its frames go to; the host of our port answers for its address.
        self.mac = host.network.mac(host.namespace, name)


@pytest.fixture
def tunnel(network: Any, real: ModuleType) -> Tunnel:
    return Tunnel(real.Host(network, "web", offloads=False))


def test_our_clients_ask_nginx_in_a_tunnel(
    tunnel: Tunnel, real: ModuleType, talks: ModuleType, tmp_path: Path
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
        with talks.generator([host.near, "dummy"], [host]) as client:
            client.set_vxlan([0], VNI, inner_mac=tunnel.mac)
            clients = talks.run(client, profile)["client"]
    assert clients["tcps_connects"] == clients["tcps_closed"] == connections
    assert clients["tcps_rcvbyte"] == connections * response
    assert len(nginx.requests()) == connections + 1, "one was ours, to see how long a response is"
    assert clients["err_tunnel_network"] == clients["err_l4_cs"] == 0


def test_curl_asks_our_servers_in_a_tunnel_and_another_network_is_counted(
    tunnel: Tunnel, real: ModuleType, talks: ModuleType
) -> None:
    host, body = tunnel.host, real.body(500_000)
    server = talks.answers(REQUEST_BYTES_MIN, talks.answer(body))
    profile = talks.profile(talks.asks(b"-", 1), server)
    with talks.generator(["dummy", host.near], [host]) as client:
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
