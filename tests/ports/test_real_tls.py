"""TLS against nginx, curl and OpenSSL: all is answered, all counts agree, and failures have their names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur import TLS

DATA = Path(__file__).resolve().parents[1] / "data" / "tls"
PAIR = (DATA / "server.pem", DATA / "server.key")
NAME = "radius.example.org"
SERVER = "48.0.0.1"
CLIENTS = range(10, 60)
# For figures: as many as one wants to wait for.
CONNECTIONS = int(os.environ.get("ALLOSAUR_TLS_CONNECTIONS", "1000"))


@pytest.fixture
def host(network: Any, real: ModuleType) -> Any:
    return real.Host(network, "web")


@pytest.fixture
def people(network: Any, real: ModuleType) -> Any:
    return real.Host(network, "people", number=1)


def applications(client: Any, side: str) -> dict[str, int]:
    """What a side counted of TLS, by name and label, but what is 0."""
    rows = client.get_flow_outcomes("_")["applications"]
    return {f"{row['name']}.{row['label']}": row[side] for row in rows if row[side]}


@pytest.mark.parametrize("certificate", ["server", "server-rsa"])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_our_clients_are_served_by_nginx(
    version: str, certificate: str, host: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    pair = (DATA / f"{certificate}.pem", DATA / f"{certificate}.key")
    with real.Nginx(host, tmp_path, {"file": real.body(2_000)}, tls=pair) as nginx:
        response = nginx.response_bytes("file")
        tls = TLS(version=version, server_name=NAME, authorities=DATA / "ca.pem", resume=0.5)
        profile = talks.profile(
            talks.asks(talks.get("file"), response),
            talks.answers(1, b"-"),
            servers=(host.address, host.address),
            cps=200,
            limit=CONNECTIONS,
            port=443,
            tls=(tls, None),
        )
        with talks.generator([host.near, "dummy"], [host]) as client:
            traffic = talks.run(client, profile)
            outcomes, counted = client.get_flow_outcomes("_"), applications(client, "client")
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    assert outcomes["client"]["completed"] == outcomes["client"]["http_2xx"] == CONNECTIONS
    assert counted.keys() == {"tls_handshakes.full", "tls_handshakes.resumed"}
    assert sum(counted.values()) == outcomes["times"]["handshake"]["count"] == CONNECTIONS
    assert counted["tls_handshakes.resumed"] > CONNECTIONS // 4
    requests = nginx.requests()[1:]
    assert len(requests) == CONNECTIONS
    assert all(line[:3] == ["/file", "200", str(response)] for line in requests)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_our_clients_are_served_by_openssl(
    version: str, host: Any, real: ModuleType, talks: ModuleType
) -> None:
    tls = TLS(version=version, server_name=NAME, authorities=DATA / "ca.pem", resume=0.5)
    profile = talks.profile(
        talks.asks_until_close(b"GET / HTTP/1.0\r\n\r\n"),
        talks.answers(1, b"-"),
        servers=(host.address, host.address),
        cps=200,
        limit=CONNECTIONS,
        port=443,
        tls=(tls, None),
    )
    with real.openssl_server(host, *PAIR), talks.generator([host.near, "dummy"], [host]) as client:
        traffic = talks.run(client, profile)
        outcomes, counted = client.get_flow_outcomes("_")["client"], applications(client, "client")
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    assert outcomes["completed"] == outcomes["http_2xx"] == CONNECTIONS
    assert counted.keys() == {"tls_handshakes.full", "tls_handshakes.resumed"}
    assert sum(counted.values()) == CONNECTIONS


@pytest.mark.parametrize("kind", ["Router", "Nat"])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_nginx_behind_a_router(
    version: str,
    kind: str,
    network: Any,
    devices: ModuleType,
    real: ModuleType,
    talks: ModuleType,
    tmp_path: Path,
) -> None:
    router = getattr(devices, kind)(network)
    router.introduce(0, CLIENTS)
    web = real.Behind(network, "web", router)
    with real.Nginx(web, tmp_path, {"file": real.body(30_000)}, tls=PAIR) as nginx:
        response = nginx.response_bytes("file")
        clients = (f"10.0.0.{CLIENTS[0]}", f"10.0.0.{CLIENTS[-1]}")
        profile = asks_nginx(
            talks, version, response, CONNECTIONS, clients=clients, servers=(web.address, web.address)
        )
        with talks.generator([router.ports[0], "dummy"]) as client:
            client.set_service_mode(enabled=True)
            client.set_l2_mode(port=0, dst_mac=router.mac(0))
            client.set_service_mode(enabled=False)
            traffic = talks.run(client, profile)
            counted = applications(client, "client")
            table = router.connections() if kind == "Nat" else []
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    assert_served(nginx, response, traffic["client"], counted, CONNECTIONS)
    kernel = router.counters()
    assert kernel["in0"] == traffic["client"]["tcps_sndtotal"]
    if kind == "Nat":
        assert kernel["invalid"] == 0
        assert len(table) == CONNECTIONS
        assert {entry["reply-dst"] for entry in table} == {"10.0.1.1"}


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_nginx_behind_a_bad_link(
    version: str,
    network: Any,
    real: ModuleType,
    talks: ModuleType,
    bad_link: Any,
    tmp_path: Path,
) -> None:
    connections = 200
    host = real.Host(network, "web", offloads=False)
    across = real.Across(network, host)
    with real.Nginx(host, tmp_path, {"file": real.body(30_000)}, tls=PAIR) as nginx:
        response = nginx.response_bytes("file")
        servers = (host.address, host.address)
        profile = asks_nginx(talks, version, response, connections, servers=servers)
        with (
            bad_link(across.space, across.ends, loss=10, reorder=50, duplicate=10, delay_ms=25) as link,
            talks.generator([host.near, "dummy"], [host]) as client,
        ):
            traffic = talks.run(client, profile)
            counted = applications(client, "client")
            # The last acknowledgement may be lost: then the host says its FIN again.
            talks.wait_until(lambda: host.open_connections() == 0)
    bad = ("tcps_drops", "err_cwf", "err_no_syn")
    assert talks.errors(traffic, *talks.UNTIMELY, *bad) == {}
    assert_served(nginx, response, traffic["client"], counted, connections)
    assert link.passed["lost"] > 0 and link.passed["duplicated"] > 0 and link.passed["late"] > 0
    assert link.passed["refused"] == 0


def asks_nginx(talks: ModuleType, version: str, response: int, connections: int, **options: Any) -> Any:
    """A profile whose clients verify nginx, and fetch a file from it once a connection."""
    tls = TLS(version=version, server_name=NAME, authorities=DATA / "ca.pem", resume=0.5)
    return talks.profile(
        talks.asks(talks.get("file"), response),
        talks.answers(1, b"-"),
        cps=100,
        limit=connections,
        port=443,
        tls=(tls, None),
        **options,
    )


def assert_served(nginx: Any, response: int, traffic: Any, counted: dict[str, int], connections: int) -> None:
    """Every connection had its handshake, and its file whole; nginx says so, too."""
    assert traffic["tcps_connects"] == traffic["tcps_closed"] == connections
    assert counted.keys() == {"tls_handshakes.full", "tls_handshakes.resumed"}
    assert sum(counted.values()) == connections
    requests = nginx.requests()[1:]
    assert len(requests) == connections
    assert all(line[:3] == ["/file", "200", str(response)] for line in requests)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_curl_is_served_by_ours(version: str, people: Any, real: ModuleType, talks: ModuleType) -> None:
    body = real.body(50_000)
    # Else curl sends its next request where the server has just closed.
    response = talks.answer(body).replace(b"OK\r\n", b"OK\r\nConnection: close\r\n", 1)
    tls = TLS(certificate=DATA / "server.pem", key=DATA / "server.key", alpn=["http/1.1"])
    profile = talks.profile(talks.asks(b"-", 1), talks.answers(40, response), port=443, tls=(None, tls))
    options = ["--resolve", f"{NAME}:443:{SERVER}", "--cacert", str(DATA / "ca.pem"), f"--tlsv{version}"]
    options += ["--tls-max", version]
    times = min(CONNECTIONS, 200)
    with talks.generator(["dummy", people.near], [people]) as client:
        client.reset()
        talks.start(client, profile)
        assert real.curl(people, f"https://{NAME}/", *options) == (real.sha256(body), len(body))
        parallel = ["--parallel", "--parallel-max", "20"]
        _, received = real.Fetched(people, f"https://{NAME}/[1-{times}]", *options, *parallel).result()
        traffic = talks.finished(client, times + 1)
        counted, outcomes = applications(client, "server"), client.get_flow_outcomes("_")["server"]
    assert received == times * len(body)
    assert outcomes["completed"] == times + 1, outcomes
    # curl closes without reading the server's close_notify, and its kernel resets for that.
    assert talks.errors(traffic, "tcps_drops", *talks.UNTIMELY) == {}
    assert sum(counted.values()) == times + 1, counted


PEER = str(Path(__file__).resolve().parent / "openssl_peer.py")


@pytest.mark.parametrize("group", ["X25519MLKEM768", "X25519", "secp256r1", "secp384r1"])
def test_keys_are_exchanged_with_openssl_over_each_group(
    group: str, host: Any, real: ModuleType, talks: ModuleType
) -> None:
    connections = 50
    profile = talks.profile(
        talks.asks_until_close(b"GET / HTTP/1.0\r\n\r\n"),
        talks.answers(1, b"-"),
        servers=(host.address, host.address),
        cps=100,
        limit=connections,
        port=443,
        tls=(TLS(version="1.3", groups=[group], server_name=NAME, authorities=DATA / "ca.pem"), None),
    )
    words = [sys.executable, PEER, "answer", "443", *map(str, PAIR)]
    peer = host.start(*words, stdout=subprocess.PIPE, text=True)
    try:
        assert peer.stdout.readline() == "ready\n"
        with talks.generator([host.near, "dummy"], [host]) as client:
            talks.run(client, profile)
            outcomes, counted = client.get_flow_outcomes("_")["client"], applications(client, "client")
        assert outcomes["completed"] == connections, (outcomes, counted)
        assert counted == {"tls_handshakes.full": connections}
        peer.terminate()
        told = json.loads(peer.communicate()[0])
    finally:
        peer.kill()
        peer.wait()
    assert {name.lower(): count for name, count in told.items()} == {group.lower(): connections}


def test_openssl_chooses_the_post_quantum_group_of_ours(
    people: Any, real: ModuleType, talks: ModuleType
) -> None:
    times = 50
    tls = TLS(
        certificate=DATA / "server.pem", key=DATA / "server.key", groups=["X25519MLKEM768"], tickets=False
    )
    answer = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"
    request = b"GET / HTTP/1.0\r\n\r\n"
    profile = talks.profile(
        talks.asks(b"-", 1), talks.answers(len(request), answer), port=443, tls=(None, tls)
    )
    with talks.generator(["dummy", people.near], [people]) as client:
        client.reset()
        talks.start(client, profile)
        told = people.run(sys.executable, PEER, "ask", SERVER, "443", str(DATA / "ca.pem"), str(times))
        talks.finished(client, times)
        counted = applications(client, "server")
    assert json.loads(told) == {"X25519MLKEM768": times}
    assert counted == {"tls_handshakes.full": times}


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("shown", ["client", "stranger", None])
def test_clients_show_certificates_to_ours(
    shown: str | None, version: str, people: Any, real: ModuleType, talks: ModuleType
) -> None:
    response = talks.answer(b"short").replace(b"OK\r\n", b"OK\r\nConnection: close\r\n", 1)
    tls = TLS(certificate=DATA / "server.pem", key=DATA / "server.key", authorities=DATA / "ca.pem")
    profile = talks.profile(talks.asks(b"-", 1), talks.answers(40, response), port=443, tls=(None, tls))
    options = ["--resolve", f"{NAME}:443:{SERVER}", "--cacert", str(DATA / "ca.pem"), f"--tlsv{version}"]
    options += ["--tls-max", version]
    if shown is not None:
        options += ["--cert", str(DATA / f"{shown}.pem"), "--key", str(DATA / f"{shown}.key")]
    with talks.generator(["dummy", people.near], [people]) as client:
        client.reset()
        talks.start(client, profile)
        fetched = real.Fetched(people, f"https://{NAME}/", *options)
        if shown == "client":
            assert fetched.result()[1] == 5
        else:
            with pytest.raises(AssertionError, match="alert"):
                fetched.result()
        talks.finished(client, 1)
        counted = applications(client, "server")
    refusals = {"client": "tls_handshakes.full", "stranger": "tls_alerts_sent.unknown_ca"}
    assert counted == {refusals.get(shown or "", "tls_alerts_sent.certificate_required"): 1}


REFUSED: dict[str, tuple[list[str], dict[str, Any], str]] = {
    "version": (["-tls1_2"], {"version": "1.3"}, "tls_alerts_received.protocol_version"),
    "suite": (
        ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"],
        {"suites": ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"], "version": "1.2"},
        "tls_alerts_received.handshake_failure",
    ),
    "expired": (
        [],
        {"authorities": DATA / "ca.pem"},
        "tls_alerts_sent.certificate_expired",
    ),
    "authority": ([], {"authorities": DATA / "other-ca.pem"}, "tls_alerts_sent.unknown_ca"),
    "name": (
        [],
        {"authorities": DATA / "ca.pem", "server_name": "other.example"},
        "tls_alerts_sent.bad_certificate",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_failures_have_their_names(case: str, host: Any, real: ModuleType, talks: ModuleType) -> None:
    options, fields, name = REFUSED[case]
    certificate = DATA / ("expired.pem" if case == "expired" else "server.pem")
    with real.openssl_server(host, certificate, PAIR[1], *options):
        assert tls_failures(host, talks, TLS(**{"server_name": NAME, **fields})) == {name: 10}


def test_plain_text_is_told_from_tls(host: Any, real: ModuleType, talks: ModuleType, tmp_path: Path) -> None:
    with real.Nginx(host, tmp_path, {"file": b"short"}):
        assert tls_failures(host, talks, TLS(), port=80) == {"tls_failures.no_tls": 10}


def tls_failures(host: Any, talks: ModuleType, tls: TLS, port: int = 443) -> dict[str, int]:
    """What ten clients count that fail."""
    profile = talks.profile(
        talks.asks(b"GET / HTTP/1.0\r\n\r\n", 10_000),
        talks.answers(1, b"-"),
        servers=(host.address, host.address),
        cps=100,
        limit=10,
        port=port,
        tls=(tls, None),
    )
    with talks.generator([host.near, "dummy"], [host]) as client:
        talks.run(client, profile)
        assert client.get_flow_outcomes("_")["client"]["completed"] == 0
        return applications(client, "client")
