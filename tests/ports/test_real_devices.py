"""Devices between our clients and our servers: a router, a NAT, a bad link. All counts agree."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

REQUEST_BYTES = 300
RESPONSE_BYTES = 32_000
CLIENTS = range(10, 60)
FAULTS = {"loss": 10, "reorder": 50, "duplicate": 10, "delay_ms": 25}
PREFIXES = ("2001:db8:0::", "2001:db8:1::")
# What a bad link makes happen.
BAD = (
    "tcps_rexmttimeo",
    "tcps_rexmttimeo_syn",
    "tcps_sndrexmitpack",
    "tcps_rcvoopack",
    "tcps_rcvduppack",
    "tcps_drops",
    "err_cwf",
    "err_no_syn",
)


def talk(real: ModuleType, talks: ModuleType, connections: int, cps: float, **options: Any) -> Any:
    """A profile whose request and response are known to their last byte."""
    request, response = real.body(REQUEST_BYTES, seed=5), real.body(RESPONSE_BYTES, seed=6)
    return talks.profile(
        talks.asks(request, len(response)),
        talks.answers(len(request), response),
        clients=(f"10.0.0.{CLIENTS[0]}", f"10.0.0.{CLIENTS[-1]}"),
        servers=options.pop("servers", ("10.0.1.2", "10.0.1.2")),
        cps=cps,
        limit=connections,
        **options,
    )


def assert_complete(traffic: Any, talks: ModuleType, connections: int, allowed: Sequence[str] = ()) -> None:
    """Every connection was made and closed by both sides, and all bytes of both arrived."""
    assert talks.errors(traffic, *allowed) == {}
    clients, servers = traffic["client"], traffic["server"]
    assert clients["tcps_connects"] == clients["tcps_closed"] == connections
    assert servers["tcps_connects"] == servers["tcps_closed"] == connections
    assert clients["tcps_rcvbyte"] == servers["tcps_sndbyte"] == connections * RESPONSE_BYTES
    assert servers["tcps_rcvbyte"] == clients["tcps_sndbyte"] == connections * REQUEST_BYTES
    assert clients["m_active_flows"] == servers["m_active_flows"] == 0


def assert_streams(wire: Any, real: ModuleType, connections: int) -> None:
    """What passed in one direction, connection by connection."""
    response = real.body(RESPONSE_BYTES, seed=6)
    streams = wire.streams()
    assert len(streams) == connections
    assert all(stream == response for stream in streams)


class On:
    """One end of a device, as ``real.Wire`` wants it."""

    def __init__(self, device: Any, link: int) -> None:
        self.namespace, self.far = device.namespace, device.far(link)

    def start(self, *command: str, **options: Any) -> Any:
        return subprocess.Popen(["ip", "netns", "exec", self.namespace, *command], **options)


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("cores", [1, 2])
def test_through_a_router(
    ipv6: bool,
    cores: int,
    network: Any,
    devices: ModuleType,
    real: ModuleType,
    talks: ModuleType,
    tmp_path: Path,
) -> None:
    connections = 1_000
    router = devices.Router(network, ipv6=ipv6)
    router.introduce(0, CLIENTS)
    if ipv6:
        introduce_v6(router)
    profile = talk(real, talks, connections, 1_000, prefixes=PREFIXES if ipv6 else None)
    with (
        talks.generator(router.ports, cores=cores) as client,
        real.Wire(On(router, 0), tmp_path, "src port 80") as wire,
    ):
        talks.send_to(client, router)
        traffic = talks.run(client, profile)
    assert_complete(traffic, talks, connections, talks.UNTIMELY)
    assert_streams(wire, real, connections)
    kernel = router.counters()
    assert kernel["forwarded"] == kernel["in0"] + kernel["in1"] == kernel["out0"] + kernel["out1"]
    assert kernel["in0"] == traffic["client"]["tcps_sndtotal"]
    assert kernel["in1"] == traffic["server"]["tcps_sndtotal"]


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("cores", [1, 2])
def test_through_a_router_whose_link_takes_less(
    ipv6: bool, cores: int, network: Any, devices: ModuleType, real: ModuleType, talks: ModuleType
) -> None:
    """The router says which segments do not fit (RFC 1191, RFC 8201), and all bytes arrive at once."""
    connections = 40
    router = devices.Router(network, ipv6=ipv6)
    router.introduce(0, CLIENTS)
    if ipv6:
        introduce_v6(router)
        # A router tells a peer only so often, and takes this as "always".
        router.write("/proc/sys/net/ipv6/icmp/ratelimit", "0")
    router.run("ip", "link", "set", "mtu", "1300", "dev", router.far(0))
    profile = talk(real, talks, connections, 200, prefixes=PREFIXES if ipv6 else None)
    with talks.generator(router.ports, cores=cores) as client:
        talks.send_to(client, router)
        traffic = talks.run(client, profile)
    # What was too long is sent again, once a connection, and nothing waits for a time-out.
    assert_complete(traffic, talks, connections, (*talks.UNTIMELY, *BAD))
    assert traffic["server"]["tcps_sndrexmitpack"] >= connections
    assert traffic["server"].get("tcps_rexmttimeo", 0) == 0


def introduce_v6(router: Any) -> None:
    """Tell the router that 2001:db8:link::a00:link.host are behind our ports."""
    lines = []
    for link, hosts in ((0, CLIENTS), (1, [2])):
        mac = router.network.mac(None, router.ports[link])
        lines += [
            f"neighbor add 2001:db8:{link}::a00:{link:x}{host:02x} lladdr {mac} dev {router.far(link)}"
            for host in hosts
        ]
    router.network.run(router.namespace, "ip", "-batch", "-", typed="\n".join(lines))


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_through_a_nat(
    ipv6: bool, network: Any, devices: ModuleType, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    connections = 2_000
    nat = devices.Nat(network, ipv6=ipv6)
    nat.introduce(0, CLIENTS)
    if ipv6:
        introduce_v6(nat)
    profile = talk(real, talks, connections, 1_000, prefixes=PREFIXES if ipv6 else None)
    with (
        talks.generator(nat.ports) as client,
        real.Wire(On(nat, 0), tmp_path, "src port 80") as wire,
    ):
        talks.send_to(client, nat)
        traffic = talks.run(client, profile)
        table = nat.connections(ipv6)
    assert_complete(traffic, talks, connections, talks.UNTIMELY)
    assert_streams(wire, real, connections)
    assert nat.counters()["invalid"] == 0
    assert len(table) == connections
    assert {entry["dst"] for entry in table} == {"2001:db8:1::a00:102" if ipv6 else "10.0.1.2"}
    # All came from behind the NAT's own address, each from a port of its own.
    assert {entry["reply-dst"] for entry in table} == {"2001:db8:1::1" if ipv6 else "10.0.1.1"}
    assert len({entry["reply-dport"] for entry in table}) == connections
    clients = {f"2001:db8::a00:{host:x}" if ipv6 else f"10.0.0.{host}" for host in CLIENTS}
    assert {entry["src"] for entry in table} == clients


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_through_a_bad_link(
    ipv6: bool, network: Any, real: ModuleType, talks: ModuleType, bad_link: Any
) -> None:
    connections = 300
    space = network.namespace("link")
    pairs = [network.veth(space) for _ in range(2)]
    profile = talk(real, talks, connections, 150, prefixes=PREFIXES if ipv6 else None)
    with (
        bad_link(space, (pairs[0][1], pairs[1][1]), **FAULTS) as link,
        talks.generator([near for near, _ in pairs]) as client,
    ):
        client.set_service_mode(enabled=True)
        for port in (0, 1):
            client.set_l2_mode(port=port, dst_mac=network.mac(None, pairs[1 - port][0]))
        client.set_service_mode(enabled=False)
        traffic = talks.run(client, profile)
    assert_complete(traffic, talks, connections, BAD)
    assert link.passed["lost"] > 0 and link.passed["duplicated"] > 0 and link.passed["late"] > 0
    assert link.passed["refused"] == 0
    assert traffic["server"]["tcps_sndrexmitpack"] > 0


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_nginx_behind_a_bad_link(
    ipv6: bool, network: Any, real: ModuleType, talks: ModuleType, bad_link: Any, tmp_path: Path
) -> None:
    connections = 200
    body = real.body(30_000, seed=7)
    host = real.Host(network, "web", offloads=False)
    across = real.Across(network, host)
    with real.Nginx(host, tmp_path, {"file": body}) as nginx:
        response = nginx.response_bytes("file")
        before = host.counted()
        profile = talks.profile(
            talks.asks(talks.get("file"), response, 3),
            talks.answers(1, b"-"),
            servers=(host.address, host.address),
            cps=100,
            limit=connections,
            prefixes=("2001:db8:16::", host.prefix) if ipv6 else None,
        )
        with (
            bad_link(across.space, across.ends, **FAULTS) as link,
            real.Wire(host, tmp_path) as wire,
            talks.generator([host.near, "dummy"], [host]) as client,
        ):
            traffic = talks.run(client, profile)
            # The last acknowledgement may be lost: then the host says its FIN again.
            talks.wait_until(lambda: host.open_connections() == 0)
        after = host.counted()
        assert host.open_connections() == 0
    assert talks.errors(traffic, *BAD) == {}
    clients = traffic["client"]
    assert clients["tcps_connects"] == clients["tcps_closed"] == connections
    assert clients["tcps_rcvbyte"] == connections * 3 * response
    assert after["TcpPassiveOpens"] - before["TcpPassiveOpens"] == connections
    assert after["TcpRetransSegs"] > before["TcpRetransSegs"]
    assert after["TcpInCsumErrors"] == 0
    assert link.passed["refused"] == 0
    requests = nginx.requests()[1:]
    assert len(requests) == connections * 3
    assert all(line[:3] == ["/file", "200", str(response)] for line in requests)
    for stream in wire.streams():
        assert len(stream) == 3 * response and stream.count(b"\r\n\r\n" + body) == 3


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_curl_behind_a_bad_link(
    ipv6: bool, network: Any, real: ModuleType, talks: ModuleType, bad_link: Any
) -> None:
    body = real.body(100_000, seed=8)
    host = real.Host(network, "people", number=1, offloads=False)
    across = real.Across(network, host)
    response = talks.answer(body)
    profile = talks.profile(
        talks.asks(b"-", 1),
        talks.answers(40, response),
        prefixes=("2001:db8:16::", "2001:db8:48::") if ipv6 else None,
    )
    server = "[2001:db8:48::3000:1]" if ipv6 else "48.0.0.1"
    with (
        bad_link(across.space, across.ends, **FAULTS) as link,
        talks.generator(["dummy", host.near], [host]) as client,
    ):
        talks.start(client, profile)
        fetched = [real.Fetched(host, f"http://{server}/", "--globoff") for _ in range(20)]
        assert [one.result() for one in fetched] == [(real.sha256(body), len(body))] * 20
        traffic = talks.finished(client, 20)
        # The last acknowledgement may be lost: then the host says its FIN again.
        talks.wait_until(lambda: host.open_connections() == 0)
    assert talks.errors(traffic, *BAD) == {}
    servers = traffic["server"]
    assert servers["tcps_accepts"] == servers["tcps_closed"] == 20
    assert servers["tcps_sndbyte_ok"] == 20 * len(response)
    assert link.passed["refused"] == 0
    assert host.open_connections() == 0
