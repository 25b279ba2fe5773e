"""The console's commands as methods of the clients, and the methods that wait for states."""

from __future__ import annotations

import inspect
import json
import logging
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import ASTFClient, EMUClient, STLClient, STLConnectionError, STLError, STLTimeoutError
from allosaur.server import LocalServer
from allosaur.testing import MockStatefulTransport, MockTransport

ROOT = Path(__file__).resolve().parents[2]
HTTP = ROOT / "profiles" / "stateful" / "http.py"
HOSTS = ROOT / "profiles" / "emulation" / "arp_hosts.py"


@pytest.fixture
def flows(binary: Path) -> Iterator[ASTFClient]:
    """A client of a real stateful server, which is its own."""
    with LocalServer(stateful=True, binary=binary) as server, server.client() as client:
        assert isinstance(client, ASTFClient)
        client.acquire_line("--force")
        yield client


@pytest.mark.parametrize("kind", [STLClient, ASTFClient, EMUClient])
def test_each_line_explains_itself(kind: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where no server is: each method finds its command."""
    transport = MockStatefulTransport() if kind is ASTFClient else MockTransport()
    client = kind() if kind is EMUClient else kind(transport=transport)
    if kind is not EMUClient:
        client.connect()
    methods = client.get_plugin_methods() if kind is EMUClient else client.get_console_methods()
    assert len(methods) >= 25
    for command, method in methods.items():
        assert method("--help") is True
        assert f"{command} [-h]" in capsys.readouterr().out, command
    named = [name for name in dir(kind) if name.endswith("_line") and name != "_line"]
    of_class = {inspect.getattr_static(kind, name).console_command for name in named}
    assert len(of_class) == len(named)


def test_what_is_asked_for_is_printed_and_what_is_done_is_logged(
    client: STLClient, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert client.acquire_line("-p 0") is True
    assert client.show_stats_line("-p --port 0") is True
    assert "Port Statistics" in capsys.readouterr().out
    assert not caplog.records
    client.set_verbose("info")
    client.release_line("-p 0")
    assert capsys.readouterr().out == ""
    assert "Released port 0" in caplog.text


@pytest.mark.parametrize(
    ("method", "line", "words"),
    [
        ("start_line", "-f nowhere.py -p 0", "nowhere.py"),
        ("start_line", "-p 0", "-f is missing"),
        ("stop_line", "-p 7", "there is no port 7"),
        ("update_line", "-p 0 -m 5", "none of .* sends"),
        ("set_port_attr_line", "-p 0 --prom maybe", "maybe"),
        ("acquire_line", "-p 0", "ours already"),
        ("ns_line", "exec 192.0.2.1", "write the program behind --"),
        ("push_line", '-p 0 -f "a', "quotation"),
        ("pkt_line", 5, "the line of 'pkt' is of type 'int'"),
    ],
)
def test_a_line_that_cannot_be_done_raises(client: STLClient, method: str, line: Any, words: str) -> None:
    client.acquire(ports=[0])
    with pytest.raises(STLError, match=words):
        getattr(client, method)(line)
    client.stop_line("-a")  # what does not run is no error, as on the console


def test_lines_connect_and_disconnect_the_client_itself(transport: MockTransport) -> None:
    client = STLClient(transport=transport)
    with pytest.raises(STLConnectionError, match=r"call connect\(\) first"):
        client.show_stats_line("")
    client.connect_line("--force")
    assert client.get_acquired_ports() == [0, 1]
    client.disconnect_line("")
    assert not client.is_connected()
    client.connect_line("-r")
    assert client.is_connected() and client.get_acquired_ports() == []
    assert client.any_port is client.get_port(0)


def test_flows_by_lines(flows: ASTFClient, capsys: pytest.CaptureFixture[str]) -> None:
    flows.start_line(f"-f {HTTP} -m 10 -d 0.5")
    flows.wait_for_profile_state("_", flows.STATE_TX, timeout=30)
    flows.update_line("-m 20")
    assert flows.wait_for_steady("_") in (flows.STATE_TX, flows.STATE_ASTF_LOADED)
    flows.wait_on_traffic(timeout=60)
    flows.profiles_line("")
    flows.show_stats_line("-a")
    flows.template_group_line("names")
    flows.latency_line("show")
    printed = capsys.readouterr().out
    assert "STATE_ASTF_LOADED" in printed and "tcps_connects" in printed, printed
    flows.black_list_line("set --ipv4 192.0.2.7")
    flows.black_list_line("upload")  # what the line before it set
    assert flows.get_ignored_macs_ips()["ips"] == ["192.0.2.7"]
    flows.clear_stats_line("-a")
    assert flows.get_traffic_stats(skip_zero=False)["client"]["tcps_connects"] == 0
    assert flows.wait_for_steady() == flows.state == flows.STATE_ASTF_LOADED
    assert flows.astf_profile_state == {"_": flows.STATE_ASTF_LOADED}
    assert flows.validate_profile_id_input("*") == ["_"]
    assert flows.validate_profile_id_input("_ new", start=True) == ["_", "new"]
    with pytest.raises(STLError, match="no profile 'new'"):
        flows.validate_profile_id_input("new")
    flows.stop_line("--remove")
    flows.check_states([flows.STATE_IDLE])


def test_streams_beside_flows_by_lines(flows: ASTFClient) -> None:
    flows.start_stl_line("-f imix -p 0 -m 100pps")
    flows.pause_line("-p 0")
    flows.resume_line("-p 0")
    flows.update_stl_line("-p 0 -m 200pps")
    flows.stop_stl_line("-p 0")
    flows.clear_stl_profiles()
    assert not flows.get_port(0).streams


def test_states_that_do_not_come_are_waited_for_so_long(mock_flows: ASTFClient) -> None:
    with pytest.raises(STLTimeoutError, match="the state of profile '_'"):
        mock_flows.wait_for_profile_state("_", mock_flows.STATE_TX, timeout=0.01)


def test_a_state_between_two_others_is_seen(mock_flows: ASTFClient, stateful: MockStatefulTransport) -> None:
    """However short: it may be over before anybody can ask."""
    mock_flows.load_profile(str(HTTP))
    mock_flows.start()
    seen: list[int] = []
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        mock_flows.wait_for_profile_state("_", mock_flows.STATE_ASTF_CLEANUP, timeout=60)
        seen.append(mock_flows.STATE_ASTF_CLEANUP)

    waiter = threading.Thread(target=wait)
    waiter.start()
    waiting.wait()
    session = mock_flows._connection.session()
    while not session._watches.get("_"):
        pass
    stateful.end_profile()
    waiter.join()
    assert seen == [mock_flows.STATE_ASTF_CLEANUP]


@pytest.fixture
def stateful() -> MockStatefulTransport:
    return MockStatefulTransport()


@pytest.fixture
def mock_flows(stateful: MockStatefulTransport) -> Iterator[ASTFClient]:
    with ASTFClient(transport=stateful) as client:
        client.acquire()
        yield client


def test_emulated_clients_by_lines(binary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with LocalServer(emu=True, binary=binary) as server:
        assert server.emu_port is not None
        with EMUClient(server=server.host, sync_port=server.emu_port) as client:
            client.acquire()
            client.load_profile_line(f"-f {HOSTS} -t --clients 3")
            client.show_all_line("--json")
            (namespace,) = json.loads(capsys.readouterr().out)["namespaces"]
            assert len(namespace["clients"]) == 3
            client.show_ns_info_line("-p 0")
            client.show_counters_ctx_line("--tables parser")
            client.get_plugin_methods()["arp_show_counters"]("-p 0")
            assert "arp" in capsys.readouterr().out.lower()
            client.remove_profile_line("")
            assert client.get_all_ns() == []
            client.release()


def test_profiles_of_ports_that_are_named(client: STLClient) -> None:
    client.acquire(ports=[0, 1])
    ports = [str(one) for one in client.validate_profile_input(["0.*", "1.web"])]
    assert ports == ["0._", "1.web"]
    with pytest.raises(STLError, match=r"input_profiles.*'0\.\*' alone"):
        client.validate_profile_input(["0.*", "0.web"])


def test_a_file_of_another_machine_is_fetched_with_rsync(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    called: list[list[str]] = []

    def run(command: list[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        called.append(command)
        return subprocess.CompletedProcess(command, 23)

    monkeypatch.setattr(subprocess, "run", run)
    client = STLClient(username="alice", server="192.0.2.1")
    fetch = client.endpoint_cb_rsync(tmp_path / "a.pcap")
    assert fetch("tcp://192.0.2.9:5000") == 0
    assert fetch("file:///tmp/b.pcap") == 23
    assert called == [["rsync", "alice@192.0.2.1:/tmp/b.pcap", str(tmp_path / "a.pcap")]]
