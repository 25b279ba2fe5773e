"""`allosaur config` and `allosaur server --config`: files that are right, and those that are not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLError, STLPktBuilder, STLStream, STLTXCont
from allosaur.server import LocalServer

pytestmark = pytest.mark.usefixtures("binary")

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a configuration file."""

    def write(text: str) -> Path:
        path = tmp_path / "lab.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_init_writes_a_file_that_is_right(allosaur: Any, tmp_path: Path) -> None:
    written = allosaur("config", "init")
    assert written.code == 0, written
    assert "allosaur server --config allosaur.yaml" in written.out
    checked = allosaur("config", "check", "allosaur.yaml", "--json")
    assert checked.code == 0, checked
    assert checked.json()["settings"]["ports"], checked
    # It tells of the machine's interfaces, and tests beside this one make some: the file is compared when
    # what is shown before and after it was written is the same.
    file = tmp_path / "allosaur.yaml"
    for _ in range(5):
        before = allosaur("config", "init", "-").out
        file.unlink()
        assert allosaur("config", "init").code == 0
        if allosaur("config", "init", "-").out == before:
            assert file.read_text(encoding="utf-8") == before
            return
    pytest.fail("the interfaces of the machine never stayed the same")


def test_init_keeps_a_file_that_is_there(allosaur: Any, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("ports: [dummy]\n", encoding="utf-8")
    allosaur("config", "init", mine).refused(str(mine), "--force")
    assert mine.read_text(encoding="utf-8") == "ports: [dummy]\n"
    assert allosaur("config", "init", mine, "--force").code == 0
    assert "version: 1" in mine.read_text(encoding="utf-8")
    allosaur("config", "init", tmp_path / "no" / "folder.yaml").refused("folder.yaml", "cannot be written")


def test_check_tells_what_a_file_says(allosaur: Any, write: Write) -> None:
    path = write(
        "ports:\n  - port: memory\n    ip: 10.0.0.1\n    default_gateway: 10.0.0.2\n    vlan: 7\n"
        "  - memory\ncores: 2\nlisten: '*'\n"
    )
    told = allosaur("config", "check", path)
    assert told.code == 0, told
    assert "2 port(s) memory, memory; 2 thread(s)" in told.out
    assert told.err == ""
    found = allosaur("config", "check", path, "--json").json()
    assert (found["ok"], found["form"], found["problems"], found["warnings"]) == (True, "allosaur", [], [])
    assert found["settings"]["ports"][0] == {
        "port": "memory",
        "ip": "10.0.0.1",
        "default_gateway": "10.0.0.2",
        "vlan": [7],
        "vxlan": None,
        "destination_mac": None,
        "source_mac": None,
        "load_max_bps": None,
    }
    assert found["settings"]["listen"] == "*"


def test_check_tells_what_is_wrong(allosaur: Any, write: Write) -> None:
    path = write("ports:\n  - memory\n  - x/y\nspeed: 9\n")
    told = allosaur("config", "check", path)
    told.refused(f"{path}:3:5: ports[1]", "unknown kind")
    assert f"{path}:4:8: speed: is not known" in told.err
    assert told.out == ""
    told = allosaur("config", "check", path, "--json")
    told.refused("ports[1]")
    found = told.json()
    assert found["ok"] is False
    places = [(problem["line"], problem["column"], problem["key"]) for problem in found["problems"]]
    assert places == [(3, 5, "ports[1]"), (4, 8, "speed")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "no UTF-8"),
        (b"a: [", "not YAML"),
        (b"", "the file is empty"),
    ],
)
def test_what_is_no_configuration(allosaur: Any, tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "lab.yaml"
    path.write_bytes(content)
    allosaur("config", "check", path).refused(str(path), words)


def test_a_file_that_is_not_there(allosaur: Any) -> None:
    allosaur("config", "check", "nowhere.yaml").refused("nowhere.yaml", "cannot be read")
    allosaur("server", "--config", "nowhere.yaml").refused("nowhere.yaml", "cannot be read")
    allosaur("config", "check").refused("FILE")


def test_trex_s_form_is_right_too(allosaur: Any, write: Write) -> None:
    path = write("- version: 2\n  interfaces: [memory, dummy]\n  rx_desc: 512\n")
    told = allosaur("config", "check", path)
    assert told.code == 0, told
    assert "TRex's form" in told.out
    assert told.err.splitlines() == [
        f"warning: {path}:3:12: rx_desc: is for DPDK, which this server does not use yet; ignored"
    ]


@pytest.fixture
def configured(write: Write) -> Iterator[LocalServer]:
    """A server with all that a file can say of its ports."""
    cpu = min(os.sched_getaffinity(0))
    path = write(
        "listen: 127.0.0.1\nrpc_port: 1\npub_port: 2\n"
        f"cores: [{cpu}]\nreceive_cpu: {cpu}\ncontrol_cpu: {cpu}\n"
        "ports:\n"
        "  - port: memory\n    ip: 10.0.0.1\n    default_gateway: 10.0.0.2\n    vlan: 100\n"
        "  - port: memory\n    source_mac: 02:00:00:00:00:22\n"
        "  - port: memory\n    ip: 10.0.1.1\n    default_gateway: 10.0.1.2\n"
        "    destination_mac: 02:00:00:00:00:33\n"
        "  - dummy\n"
        "  - memory\n"
    )
    with LocalServer(config=path) as server:
        yield server


def test_a_server_is_what_its_file_says(configured: LocalServer) -> None:
    with configured.client() as client:
        ports = client.get_port_info()
    assert [port["driver"] for port in ports] == ["memory", "memory", "memory", "dummy", "memory"]
    assert (ports[0]["layer_mode"], ports[0]["src_ipv4"], ports[0]["dest"]) == (
        "IPv4",
        "10.0.0.1",
        "10.0.0.2",
    )
    assert (ports[0]["arp"], ports[0]["vlan"]) == ("unresolved", 100)
    assert ports[1]["hw_mac"] == ports[0]["dst_mac"] == "02:00:00:00:00:22"
    assert (ports[2]["arp"], ports[2]["dst_mac"]) == ("02:00:00:00:00:33", "02:00:00:00:00:33")
    assert ports[3]["layer_mode"] == "Ethernet"


def test_ports_with_addresses_answer_for_them(write: Write) -> None:
    path = write(
        "ports:\n"
        "  - port: memory\n    ip: 10.0.0.1\n    default_gateway: 10.0.0.2\n"
        "  - port: memory\n    ip: 10.0.0.2\n    default_gateway: 10.0.0.1\n"
    )
    with LocalServer(config=path) as server, server.client() as client:
        client.reset(ports=[0, 1])
        client.set_service_mode(ports=[0, 1])
        client.resolve(ports=[0, 1])
        client.set_service_mode(ports=[0, 1], enabled=False)
        ports = client.get_port_info()
    assert ports[0]["arp"] == ports[1]["hw_mac"]
    assert ports[1]["arp"] == ports[0]["hw_mac"]


def test_ports_find_their_gateways_by_themselves(write: Write) -> None:
    path = write(
        "ports:\n"
        "  - port: memory\n    ip: 10.0.0.1\n    default_gateway: 10.0.0.2\n    vlan: 7\n"
        "  - port: memory\n    ip: 10.0.0.2\n    default_gateway: 10.0.0.1\n    vlan: 7\n"
    )
    with LocalServer(config=path) as server, server.client() as client:
        patience_s = time.monotonic() + 20
        while any(port["arp"] == "unresolved" for port in client.get_port_info()):
            assert time.monotonic() < patience_s, "the ports do not find each other"
            time.sleep(0.05)
        ports = client.get_port_info()
    assert ports[0]["arp"] == ports[1]["hw_mac"]
    assert ports[1]["arp"] == ports[0]["hw_mac"]


def test_options_go_before_the_file(write: Write) -> None:
    path = write("ports: [dummy, dummy, dummy]\ncores: 5\n")
    options = ["--cores", "2", "--ports-max", "2"]
    with LocalServer(config=path, options=options) as server, server.client() as client:
        assert client.get_port_count() == 2
        assert client.get_server_system_info()["dp_core_count"] == 2


def test_a_limit_holds_also_by_force(write: Write) -> None:
    path = write("ports:\n  - port: memory\n    load_max: 1gbps\n  - memory\n")
    packet = STLPktBuilder(pkt_buffer=bytes(60))
    with LocalServer(config=path) as server, server.client() as client:
        client.reset(ports=[0, 1])
        client.add_streams(STLStream(packet=packet, mode=STLTXCont(pps=1000)), ports=[0, 1])
        with pytest.raises(STLError, match=r"exceeds what users may send.*load_max"):
            client.start(ports=[0], mult="1.1gbpsl1", force=True)
        client.start(ports=[0], mult="1gbpsl1", duration=0.01)
        client.wait_on_traffic(ports=[0])
        client.start(ports=[0], mult="10mbps")
        with pytest.raises(STLError, match="load_max"):
            client.update(ports=[0], mult="2gbps", force=True)
        client.stop(ports=[0])
        with pytest.raises(STLError, match="load_max"):
            client.push_remote("/tmp/any.pcap", ports=[0])
        client.start(ports=[1], mult="2gbpsl1", duration=0.01)
        client.wait_on_traffic(ports=[1])
