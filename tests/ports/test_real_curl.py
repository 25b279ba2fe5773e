"""Our servers against curl and wrk on the Linux kernel: every body is right, and all counts agree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SERVER = "48.0.0.1"
SERVER_V6 = "2001:db8:48::3000:1"
PREFIXES = ("2001:db8:16::", "2001:db8:48::")
# What the head of any of curl's requests has at least.
REQUEST_BYTES_MIN = 40


@pytest.fixture
def host(network: Any, real: ModuleType) -> Any:
    return real.Host(network, "people", number=1)


def url(ipv6: bool) -> str:
    return f"http://[{SERVER_V6}]/" if ipv6 else f"http://{SERVER}/"


def serving(talks: ModuleType, response: bytes, again: bool = False, **options: Any) -> Any:
    """A profile with servers on all addresses, and no clients of its own."""
    server = talks.answers(options.pop("request_bytes", REQUEST_BYTES_MIN), response, again)
    return talks.profile(talks.asks(b"-", 1), server, **options)


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_curl_gets_every_byte(ipv6: bool, host: Any, real: ModuleType, talks: ModuleType) -> None:
    prefixes = PREFIXES if ipv6 else None
    with talks.generator(["dummy", host.near], [host]) as client:
        for size in (0, 5_000_000) if ipv6 else (1, 1_460, 5_000_000):
            body = real.body(size, seed=size)
            talks.start(client, serving(talks, talks.answer(body), prefixes=prefixes, txbufsize=1 << 20))
            before = host.counted()
            assert client.get_profiles_state() == {"_": "STATE_TX"}
            assert real.curl(host, url(ipv6)) == (real.sha256(body), size)
            after = host.counted()
            traffic = talks.finished(client, 1)
            assert talks.errors(traffic, *talks.UNTIMELY) == {}
            servers = traffic["server"]
            assert (servers["tcps_accepts"], servers["tcps_connects"], servers["tcps_closed"]) == (1, 1, 1)
            assert servers["tcps_sndbyte_ok"] == len(talks.answer(body))
            assert after["TcpOutSegs"] - before["TcpOutSegs"] == servers["tcps_rcvtotal"]
            assert after["TcpActiveOpens"] - before["TcpActiveOpens"] == 1
            assert host.open_connections() == 0


def test_two_threads_share_the_work(host: Any, real: ModuleType, talks: ModuleType) -> None:
    body = real.body(100_000)
    with talks.generator(["dummy", host.near], [host], cores=2) as client:
        talks.start(client, serving(talks, talks.answer(body)))
        # All at the same time, each from a port of its own.
        parallel = ["--parallel", "--parallel-immediate", "--parallel-max", "40"]
        _, received = real.Fetched(host, f"http://{SERVER}/[1-40]", *parallel).result()
        traffic = talks.finished(client, 40)
    assert received == 40 * len(body)
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    assert traffic["server"]["tcps_closed"] == 40
    assert host.open_connections() == 0


def test_af_xdp_serves_too(host: Any, real: ModuleType, talks: ModuleType) -> None:
    body = real.body(1_000_000)
    # What the kernel leaves to a card, XDP does not get.
    host.run("ethtool", "-K", host.far, "tx", "off")
    with talks.generator(["dummy", f"af_xdp:{host.near}"], [host]) as client:
        talks.start(client, serving(talks, talks.answer(body)))
        assert real.curl(host, url(False)) == (real.sha256(body), len(body))


def test_an_upload_is_read_to_its_end(host: Any, real: ModuleType, talks: ModuleType, tmp_path: Path) -> None:
    upload = tmp_path / "upload"
    upload.write_bytes(real.body(3_000_000))
    with talks.generator(["dummy", host.near], [host]) as client:
        talks.start(client, serving(talks, talks.answer(b"thanks"), request_bytes=3_000_000))
        # curl would wait to be told to go on, and would ask how long the head is.
        options = ["-H", "Expect:", "--data-binary", f"@{upload}"]
        assert real.curl(host, url(False), *options) == (real.sha256(b"thanks"), 6)
        traffic = talks.finished(client, 1)
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    assert 3_000_000 < traffic["server"]["tcps_rcvbyte"] < 3_001_000


def test_what_nobody_serves_is_refused(host: Any, talks: ModuleType) -> None:
    with talks.generator(["dummy", host.near], [host]) as client:
        talks.start(client, serving(talks, talks.answer(b"")))
        command = ["ip", "netns", "exec", host.namespace, "curl", "-s", "--max-time", "20"]
        done = subprocess.run([*command, f"http://{SERVER}:81/"], capture_output=True, check=False)
        # 7: it failed to connect; 28 would be that nobody answered.
        assert done.returncode == 7
        # Threads publish what they counted a little later.
        talks.wait_until(lambda: talks.counted(client)["server"]["err_no_template"] > 0)
        assert talks.counted(client)["server"]["err_no_template"] == 1


def test_wrk_finds_no_fault(host: Any, real: ModuleType, talks: ModuleType) -> None:
    response = talks.answer(real.body(1_000))
    with talks.generator(["dummy", host.near], [host]) as client:
        # The whole request, so that each gets one answer.
        request = f"GET / HTTP/1.1\r\nHost: {SERVER}\r\n\r\n"
        talks.start(client, serving(talks, response, again=True, request_bytes=len(request)))
        output = host.run("wrk", "-t1", "-c40", "-d2s", "--timeout", "10s", f"http://{SERVER}/")
        traffic = talks.finished(client, 41)
    assert "Socket errors" not in output and "Non-2xx" not in output, output
    found = re.search(r"(\d+) requests in", output)
    assert found is not None, output
    # wrk leaves when its time is over, and does not count what it did not read to its end.
    answered = traffic["server"]["tcps_sndbyte"] // len(response)
    assert int(found[1]) > 1_000
    assert int(found[1]) <= answered <= int(found[1]) + 40
    assert traffic["server"]["tcps_accepts"] >= 40
    assert host.open_connections() == 0
