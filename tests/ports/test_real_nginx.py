"""Our clients against nginx on the Linux kernel: all is answered, every byte is right, all counts agree."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BODY_BYTES = 600


@pytest.fixture
def host(network: Any, real: ModuleType) -> Any:
    return real.Host(network, "web")


def assert_kernel_agrees(client: Any, kernel: dict[str, int], connections: int) -> None:
    """On a clean wire each side counts what the other sent."""
    assert kernel["TcpPassiveOpens"] == client["tcps_connects"] == client["tcps_closed"] == connections
    assert kernel["TcpInSegs"] == client["tcps_sndtotal"]
    again = kernel["TcpRetransSegs"] - kernel["TcpExtTCPSynRetrans"]
    assert kernel["TcpOutSegs"] + again == client["tcps_rcvtotal"]
    for name in ("TcpInErrs", "TcpInCsumErrors", "TcpEstabResets", "TcpOutRsts", "TcpExtListenDrops"):
        assert kernel[name] == 0, name


def difference(after: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in after}


def assert_bodies(streams: list[bytes], body: bytes, response_bytes: int, times: int) -> None:
    """Each connection got the same body so many times, each behind a head, and nothing else."""
    for stream in streams:
        assert len(stream) == times * response_bytes
        for at in range(0, len(stream), response_bytes):
            assert stream.startswith(b"HTTP/1.1 200 OK\r\n", at)
            assert stream[at : at + response_bytes].endswith(b"\r\n\r\n" + body)


@pytest.mark.alone  # nginx and the generator want a CPU each: the counts of both agree while none sends again
def test_a_hundred_thousand_requests(host: Any, real: ModuleType, talks: ModuleType, tmp_path: Path) -> None:
    connections, times = 2_000, 50
    body = real.body(BODY_BYTES)
    with real.Nginx(host, tmp_path, {"file": body}) as nginx:
        response = nginx.response_bytes("file")
        profile = talks.profile(
            talks.asks(talks.get("file"), response, times),
            talks.answers(1, b"-"),
            servers=(host.address, host.address),
            cps=400,
            limit=connections,
        )
        before = host.counted()
        with real.Wire(host, tmp_path) as wire, talks.generator([host.near, "dummy"], [host]) as client:
            traffic = talks.run(client, profile)
        kernel = difference(host.counted(), before)
        assert host.open_connections() == 0
    clients = traffic["client"]
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    assert clients["tcps_rcvbyte"] == connections * times * response
    assert clients["tcps_sndbyte"] == connections * times * len(talks.get("file"))
    assert_kernel_agrees(clients, kernel, connections)
    # One request was ours, to see how long a response is.
    requests = nginx.requests()[1:]
    assert len(requests) == connections * times
    assert all(line[:3] == ["/file", "200", str(response)] for line in requests)
    streams = wire.streams()
    assert len(streams) == connections
    assert_bodies(streams, body, response, times)


@pytest.mark.alone
@pytest.mark.parametrize("case", ["two-threads", "ipv6", "af_xdp"])
def test_long_bodies(case: str, host: Any, real: ModuleType, talks: ModuleType, tmp_path: Path) -> None:
    connections = 300
    body = real.body(200_000, seed=2)
    prefixes = (host.prefix, host.prefix) if case == "ipv6" else None
    port = f"af_xdp:{host.near}" if case == "af_xdp" else host.near
    with real.Nginx(host, tmp_path, {"file": body}) as nginx:
        response = nginx.response_bytes("file")
        profile = talks.profile(
            talks.asks(talks.get("file"), response),
            talks.answers(1, b"-"),
            clients=("10.0.0.10", "10.0.0.200"),
            servers=(host.address, host.address),
            cps=300,
            limit=connections,
            prefixes=prefixes,
            rxbufsize=256 * 1024,
        )
        before = host.counted()
        cores = 2 if case == "two-threads" else 1
        with (
            real.Wire(host, tmp_path) as wire,
            talks.generator([port, "dummy"], [host], cores=cores) as client,
        ):
            real.be_neighbors(host, range(10, 201), prefixes is not None)
            traffic = talks.run(client, profile)
        kernel = difference(host.counted(), before)
        assert host.open_connections() == 0
    clients = traffic["client"]
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    assert clients["tcps_rcvbyte"] == connections * response
    assert_kernel_agrees(clients, kernel, connections)
    assert_bodies(wire.streams(), body, response, 1)


def test_what_clients_send_is_what_nginx_reads(
    host: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    words = real.body(2_500, seed=3).hex()
    connections, times = 200, 5
    with real.Nginx(host, tmp_path, {"file": b"short"}) as nginx:
        response = nginx.response_bytes("file")
        request = talks.get("file", f"X-Bytes: {words}\r\n")
        profile = talks.profile(
            talks.asks(request, response, times),
            talks.answers(1, b"-"),
            servers=(host.address, host.address),
            cps=200,
            limit=connections,
            mss=500,
        )
        with talks.generator([host.near, "dummy"], [host]) as client:
            traffic = talks.run(client, profile)
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    requests = nginx.requests()[1:]
    assert len(requests) == connections * times
    assert all(line == ["/file", "200", str(response), words] for line in requests)


@pytest.mark.parametrize("timestamps", [1, 0], ids=["timestamps", "none"])
def test_a_generator_that_starts_again_finds_the_door_open(
    timestamps: int, host: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    connections = 100
    with real.Nginx(host, tmp_path, {"file": b"short"}) as nginx:
        # nginx closes first, and its kernel remembers each connection for a minute.
        request = talks.get("file", "Connection: close\r\n")
        profile = talks.profile(
            talks.asks(request, 1_000_000),
            talks.answers(1, b"-"),
            clients=("16.0.0.1", "16.0.0.1"),
            servers=(host.address, host.address),
            cps=1_000,
            limit=connections,
            do_rfc1323=timestamps,
        )
        for run in (1, 2):
            with talks.generator([host.near, "dummy"], [host]) as client:
                traffic = talks.run(client, profile)
            assert talks.errors(traffic, *talks.UNTIMELY) == {}
            assert traffic["client"]["tcps_connects"] == traffic["client"]["tcps_closed"] == connections
            kernel = host.counted()
            assert kernel["TcpExtPAWSTimewait"] == 0
            assert kernel["TcpPassiveOpens"] == run * connections
            # Who is not let in resets what stands in the way, and comes back a second later.
            assert traffic["client"]["tcps_rexmttimeo_syn"] < connections // 10
    assert len(nginx.requests()) == 2 * connections
