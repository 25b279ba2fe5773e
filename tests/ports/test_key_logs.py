"""Key logs of TLS: with them a capture of ours is read by Wireshark's own, and OpenSSL logs the same keys."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur import TLS, STLError
from allosaur.server import LocalServer

DATA = Path(__file__).resolve().parents[1] / "data" / "tls"
PAIR = (DATA / "server.pem", DATA / "server.key")
NAME = "radius.example.org"
SERVER = "48.0.0.1"
CONNECTIONS = 20
DROPPED = "allosaur_tls_key_log_lines_dropped"
#: What each connection has a line of.
LABELS = {
    "1.2": {"CLIENT_RANDOM"},
    "1.3": {
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
        "EXPORTER_SECRET",
    },
}
VERSIONS = pytest.mark.parametrize("version", LABELS)


def lines(path: Path) -> set[str]:
    """The lines of a key log but for comments. No two connections have the same."""
    found = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert len(set(found)) == len(found)
    return set(found)


def assert_labels(found: set[str], version: str, connections: int = CONNECTIONS) -> None:
    """Each connection has one line of each secret."""
    words = [line.split() for line in found]
    by_label = {label: {words[1] for words in words if words[0] == label} for label in LABELS[version]}
    assert {word[0] for word in words} == LABELS[version]
    assert all(len(randoms) == connections for randoms in by_label.values())
    assert len(set.union(*by_label.values())) == connections


def both_ends(talks: ModuleType, version: str, folder: Path, response: bytes = b"x" * 100) -> Any:
    """A profile of clients and servers with a key log each, named by an absolute path and a relative one."""
    asks = TLS(version=version, server_name=NAME, resume=0.5, key_log=folder / "clients.log")
    request = talks.get("secret")
    return talks.profile(
        talks.asks(request, len(response)),
        talks.answers(len(request), response),
        cps=200,
        limit=CONNECTIONS,
        port=443,
        tls=(asks, TLS(version=version, key_log=str(folder / "servers.log"))),
    )


def server_in(folder: Path) -> Any:
    """A stateful server on ports in memory whose clients may name files of a folder."""
    ports = ["memory", "memory"]
    return LocalServer(ports=ports, cores=1, stateful=True, options=captures_folder(folder))


def captures_folder(folder: Path) -> list[str]:
    return ["--captures-folder", str(folder)]


@VERSIONS
def test_both_ends_log_the_same_keys(version: str, talks: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "clients.log").write_text("# kept\n")
    with server_in(tmp_path) as server, server.client() as client:
        for _ in range(2):
            talks.run(client, both_ends(talks, version, tmp_path))
        dropped = client.get_metrics([DROPPED]).series(DROPPED)
    assert list(dropped.values()) == [0]
    clients, servers = (tmp_path / f"{side}.log" for side in ("clients", "servers"))
    assert lines(clients) == lines(servers)
    assert_labels(lines(clients), version, 2 * CONNECTIONS)
    assert clients.read_text().startswith("# kept\n")
    assert servers.stat().st_mode & 0o777 == 0o600


@VERSIONS
def test_a_capture_is_read_with_its_key_log(version: str, talks: ModuleType, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("there is no `tshark`: install tshark")
    words = b"words that nobody may read"
    with server_in(tmp_path) as server, server.client() as client:
        client.reset()
        client.load_profile(both_ends(talks, version, tmp_path, talks.answer(words)))
        client.set_service_mode(enabled=True)
        capture = client.start_capture(tx_ports=[0, 1], limit=10_000)["id"]
        client.start()
        client.wait_on_traffic(timeout=talks.PATIENCE_S)
        client.stop_capture(capture, tmp_path / "wire.pcapng")
    assert words not in (tmp_path / "wire.pcapng").read_bytes()
    for name in ("clients.log", "servers.log"):
        shown = read(tmp_path / "wire.pcapng", tmp_path / name)
        assert shown == [words.decode()] * CONNECTIONS
    assert read(tmp_path / "wire.pcapng", tmp_path / "none.log") == []


def read(capture: Path, key_log: Path) -> list[str]:
    """The bodies of all responses that tshark sees in a capture."""
    words = ["tshark", "-r", str(capture), "-o", f"tls.keylog_file:{key_log}", "-Y", "http.response"]
    words += ["-T", "fields", "-e", "http.file_data"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [text(line) for line in done.stdout.splitlines()]


def text(shown: str) -> str:
    """What was shown as text, or by newer releases in hexadecimal digits."""
    try:
        return bytes.fromhex(shown).decode()
    except ValueError:
        return shown


def test_a_file_that_cannot_be_a_key_log_is_named(talks: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"\xd4\xc3\xb2\xa1")
    (tmp_path / "away").symlink_to("/etc/allosaur-no-such-file")
    wrong = {
        "/etc/keys.log": f"it is not in {tmp_path}, the folder where clients of this server may name files",
        str(tmp_path / "no" / "keys.log"): "its folder is not there: make it on the server's machine",
        str(tmp_path / "a.pcap"): "something else is in it",
        str(tmp_path): "it is a folder, not a file",
        str(tmp_path / "away"): "it is a link to nothing, not a file",
    }
    with server_in(tmp_path) as server, server.client() as client:
        for path, problem in wrong.items():
            profile = talks.profile(
                talks.asks(b"x", 1), talks.answers(1, b"x"), port=443, tls=(TLS(key_log=path), TLS())
            )
            client.reset()
            client.load_profile(profile)
            with pytest.raises(STLError) as error:
                client.start(duration=1)
            assert f"templates[0].client_template.tls.key_log: {path}: {problem}" in str(error.value)
    assert (tmp_path / "a.pcap").read_bytes() == b"\xd4\xc3\xb2\xa1"


@VERSIONS
def test_openssl_server_logs_the_same(
    version: str, network: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    host = real.Host(network, "web")
    theirs = tmp_path / "theirs.log"
    profile = talks.profile(
        talks.asks_until_close(b"GET / HTTP/1.0\r\n\r\n"),
        talks.answers(1, b"-"),
        servers=(host.address, host.address),
        cps=100,
        limit=CONNECTIONS,
        port=443,
        tls=(TLS(version=version, server_name=NAME, key_log=tmp_path / "ours.log"), None),
    )
    with (
        real.openssl_server(host, *PAIR, "-keylogfile", str(theirs)),
        talks.generator([host.near, "dummy"], [host], options=captures_folder(tmp_path)) as client,
    ):
        talks.run(client, profile)
        assert client.get_flow_outcomes("_")["client"]["completed"] == CONNECTIONS
    assert lines(tmp_path / "ours.log") == lines(theirs)
    assert_labels(lines(theirs), version)


@VERSIONS
def test_openssl_client_is_served_resumed_and_logs_the_same(
    version: str, network: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    people = real.Host(network, "people", number=1)
    body = real.body(50_000)
    request = talks.get("file")
    tls = TLS(
        certificate=PAIR[0],
        key=PAIR[1],
        alpn=["http/1.1"],
        key_log=tmp_path / "ours.log",
    )
    profile = talks.profile(
        talks.asks(b"-", 1), talks.answers(len(request), talks.answer(body)), port=443, tls=(None, tls)
    )
    words = ["openssl", "s_client", "-connect", f"{SERVER}:443", "-servername", NAME, "-quiet"]
    words += ["-CAfile", str(DATA / "ca.pem"), "-verify_return_error", "-verify_hostname", NAME]
    words += [
        "-alpn",
        "http/1.1",
        "-keylogfile",
        str(tmp_path / "theirs.log"),
        f"-tls{version}".replace(".", "_"),
    ]
    session = str(tmp_path / "session.pem")
    with talks.generator(["dummy", people.near], [people], options=captures_folder(tmp_path)) as client:
        client.reset()
        talks.start(client, profile)
        for more in (["-sess_out", session], ["-sess_in", session]):
            process = people.start(*words, *more, stdin=-1, stdout=-1, stderr=-1)
            got, said = process.communicate(request, timeout=60)
            assert process.returncode == 0, said.decode()
            assert got == talks.answer(body)
        talks.finished(client, 2)
        rows = client.get_flow_outcomes("_")["applications"]
    counted = {row["label"]: row["server"] for row in rows if row["server"]}
    assert counted == {"full": 1, "resumed": 1}
    assert lines(tmp_path / "ours.log") == lines(tmp_path / "theirs.log")
    assert_labels(lines(tmp_path / "theirs.log"), version, 2)
