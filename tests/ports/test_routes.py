"""BGP speakers of a server: tables of routes to a router of FRR, and what goes wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import NSCmds, STLClient, STLError
from allosaur.cli._main import main
from allosaur.server import LocalServer

pytestmark = pytest.mark.usefixtures("networks_work")

FRR = Path("/usr/lib/frr")
WAIT_S = 60
COUNT = 1000
MAC = "02:00:00:00:00:07"
NODE, NODE_IPV6 = "192.0.2.1", "2001:db8:1::1"
ROUTER, ROUTER_IPV6 = "192.0.2.254", "2001:db8:1::fe"
CONFIG = f"""
router bgp 65000
 bgp router-id {ROUTER}
 no bgp ebgp-requires-policy
 neighbor {NODE} remote-as 65001
 neighbor {NODE} timers 3 9
 neighbor {NODE} timers connect 1
 {{more}}
 address-family ipv6 unicast
  neighbor {NODE} activate
 exit-address-family
"""


def wait_until(holds: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


class Router:
    """FRR's zebra and bgpd in a namespace, beside a port of the server."""

    def __init__(self, network: Any, folder: Path, more: str) -> None:
        self._network = network
        self._folder = folder
        self.namespace = network.namespace("frr")
        self.port, far = network.veth(self.namespace)
        network.run(self.namespace, "ip", "address", "add", f"{ROUTER}/24", "dev", far)
        network.run(self.namespace, "sysctl", "-qw", f"net.ipv6.conf.{far}.disable_ipv6=0")
        network.run(self.namespace, "ip", "address", "add", f"{ROUTER_IPV6}/64", "dev", far, "nodad")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for name, config in (("zebra", ""), ("bgpd", CONFIG.replace("{more}", more))):
            file = folder / f"{name}.conf"
            file.write_text(config, encoding="utf-8")
            paths = ["-f", str(file), "-i", f"{folder}/{name}.pid", "--vty_socket", str(folder)]
            command = [str(FRR / name), *paths, "-z", f"{folder}/zserv.api", "-A", "127.0.0.1", "-P", "0"]
            inside = ["ip", "netns", "exec", self.namespace, *command]
            log = (folder / f"{name}.log").open("w")
            self.processes[name] = subprocess.Popen(inside, stdout=log, stderr=log)
            wait_until((folder / f"{name}.vty").exists, lambda: f"see {folder}")

    def show(self, what: str) -> dict[str, Any]:
        typed = ["vtysh", "--vty_socket", str(self._folder), "-c", f"show {what} json"]
        shown: dict[str, Any] = json.loads(self._network.run(self.namespace, *typed))
        return shown

    def type(self, *lines: str) -> None:
        typed = ["vtysh", "--vty_socket", str(self._folder)]
        words = [word for line in lines for word in ("-c", line)]
        self._network.run(self.namespace, *typed, *words)

    def counts(self) -> tuple[int, int]:
        """The routes that bgpd has of the node, of IPv4 and of IPv6."""
        found = []
        for family in ("ipv4", "ipv6"):
            peers = self.show(f"bgp {family} unicast summary").get("peers", {})
            found.append(int(peers.get(NODE, {}).get("pfxRcd", 0)))
        return found[0], found[1]

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def router(network: Any) -> Iterator[Callable[[str], Router]]:
    if not (FRR / "bgpd").exists() or shutil.which("vtysh") is None:
        pytest.skip("there is no FRR: install frr")
    routers: list[Router] = []

    def make(more: str = "") -> Router:
        routers.append(Router(network, Path(folder), more))
        return routers[-1]

    # The daemons are another user's processes, and their sockets have short names.
    with tempfile.TemporaryDirectory(prefix="frr-") as folder:
        shutil.chown(folder, "frr", "frr")
        yield make
        for one in routers:
            one.stop()


class Bench:
    """A router, a server with a node before it, and a client."""

    def __init__(self, router: Router, server: LocalServer[STLClient], client: STLClient) -> None:
        self.router, self.server, self.client = router, server, client

    def session(self) -> dict[str, Any]:
        (speaker,) = self.client.routes_show("r1")
        session: dict[str, Any] = speaker["sessions"][0]
        return session

    def add(self, **fields: Any) -> None:
        self.client.routes_add_speaker("r1", 65001, NODE, port=0, node=MAC, hold_time_s=9)
        self.client.routes_add_session("r1", ROUTER, peer_asn=65000, connect_retry_s=1, **fields)

    def wait_for_state(self, state: str) -> None:
        wait_until(lambda: self.session()["state"] == state, self.session)

    def wait_for_error(self, words: str) -> None:
        wait_until(lambda: words in (self.session()["last_error"] or ""), self.session)

    def wait_for_counts(self, counts: tuple[int, int]) -> None:
        wait_until(lambda: self.router.counts() == counts, lambda: (self.router.counts(), self.session()))


@pytest.fixture
def bench(router: Callable[[str], Router]) -> Iterator[Callable[..., Bench]]:
    opened: list[Any] = []

    def make(more: str = "") -> Bench:
        frr = router(more)
        server = LocalServer(ports=[frr.port])
        opened.append(server.__enter__())
        client = STLClient(server=server.host, sync_port=server.rpc_port, async_port=server.pub_port)
        client.connect()
        opened.append(client)
        add_node(client)
        return Bench(frr, server, client)

    yield make
    for one in reversed(opened):
        one.__exit__(None, None, None)


def add_node(client: STLClient) -> None:
    client.acquire()
    client.set_service_mode()
    cmds = NSCmds()
    cmds.add_node(MAC)
    cmds.add_cmd("set_ipv4", mac=MAC, ipv4=NODE, subnet=24)
    cmds.add_cmd("set_ipv6", mac=MAC, enable=True, src_ipv6=NODE_IPV6, subnet=64)
    client.set_namespace_start(0, cmds)
    client.wait_for_async_results(0)


def test_a_router_learns_two_tables_and_loses_them(bench: Callable[..., Bench]) -> None:
    one = bench()
    one.add()
    one.wait_for_state("Established")
    told = one.client.routes_announce("r1", "v4", {"from": "range", "first": "198.18.0.0/28", "count": COUNT})
    assert told == {"routes": COUNT, "family": "ipv4", "sessions": 1}
    one.client.routes_announce("r1", "v6", {"from": "seed", "family": "ipv6", "count": COUNT})
    one.wait_for_counts((COUNT, COUNT))
    wait_until(lambda: one.session()["acknowledged_s"] is not None, one.session)
    session = one.session()
    assert session["counters"]["announced"] == 2 * COUNT
    assert session["peer_asn"] == 65000
    assert session["hold_time_s"] == 9
    route = one.router.show("bgp ipv4 unicast 198.18.0.0/28")["paths"][0]
    assert route["aspath"]["string"] == "65001"
    assert route["nexthops"][0]["ip"] == NODE
    metrics = one.client.get_metrics(["allosaur_bgp_"])
    assert metrics.value("allosaur_bgp_routes_announced", speaker="r1", peer=ROUTER) == 2 * COUNT
    # A tenth, five times.
    one.client.routes_flap("r1", "v4", 100_000, times=5, share=10)
    wait_until(lambda: one.session()["counters"]["withdrawn"] == COUNT // 2, one.session)
    one.wait_for_counts((COUNT, COUNT))
    one.client.routes_withdraw("r1", "v4")
    one.wait_for_counts((0, COUNT))
    one.client.routes_remove("r1")
    assert one.client.routes_show() == []
    one.wait_for_counts((0, 0))


def test_the_command_announces_and_waits(
    bench: Callable[..., Bench], capsys: pytest.CaptureFixture[str]
) -> None:
    one = bench()
    where = ["--server", f"{one.server.host}:{one.server.rpc_port}", "--pub-port", str(one.server.pub_port)]

    def routes(action: str, *words: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert main(["routes", action, *where, "--json", *words]) == code, capsys.readouterr()
        return json.loads(capsys.readouterr().out)

    routes("add", "r1", "--asn", "65001", "--peer", ROUTER, "--peer-asn", "65000", "--node", NODE)
    told = routes("announce", "r1", "--first", "198.18.0.0/24", "--count", "100", "--wait", str(WAIT_S))
    assert (told["routes"], told["sessions_now"][0]["state"]) == (100, "Established")
    one.wait_for_counts((100, 0))
    (speaker,) = routes("show")["speakers"]
    assert speaker["tables"][0]["routes"] == 100
    routes("withdraw", "r1", "--wait", str(WAIT_S))
    one.wait_for_counts((0, 0))
    routes("remove", "r1")
    assert routes("show")["speakers"] == []


def test_a_wrong_md5_key_is_named_and_a_right_one_connects(bench: Callable[..., Bench]) -> None:
    one = bench(f"neighbor {NODE} password right")
    one.add(md5="wrong")
    one.wait_for_error("another MD5 key")
    one.client.routes_remove("r1")
    one.add(md5="right")
    one.wait_for_state("Established")


def test_a_passive_session_takes_the_connection_of_its_peer(bench: Callable[..., Bench]) -> None:
    one = bench(f"neighbor {NODE} password secret")
    one.add(passive=True, md5="secret")
    one.wait_for_state("Established")


def test_why_a_session_ended_is_told(bench: Callable[..., Bench]) -> None:
    one = bench()
    one.add()
    one.wait_for_state("Established")
    # The peer closes.
    one.router.type("clear bgp *")
    one.wait_for_error("the peer ended it")
    one.wait_for_state("Established")
    # The peer says nothing any more.
    one.router.processes["bgpd"].send_signal(signal.SIGSTOP)
    one.wait_for_error("Hold Timer Expired")
    one.router.processes["bgpd"].send_signal(signal.SIGCONT)
    one.wait_for_state("Established")


def test_a_peer_of_another_as_is_refused(bench: Callable[..., Bench]) -> None:
    one = bench()
    one.client.routes_add_speaker("r1", 65001, NODE, port=0, node=MAC)
    one.client.routes_add_session("r1", ROUTER, peer_asn=65009, connect_retry_s=1)
    one.wait_for_error("Bad Peer AS")


def test_a_killed_server_leaves_no_session(bench: Callable[..., Bench]) -> None:
    one = bench()
    one.add()
    one.client.routes_announce("r1", "v4", {"from": "range", "first": "198.18.0.0/28", "count": COUNT})
    one.wait_for_counts((COUNT, 0))
    assert one.server.pid is not None
    os.kill(one.server.pid, signal.SIGKILL)
    wait_until(lambda: one.router.counts() == (0, 0), one.router.counts)


@pytest.fixture(scope="module")
def client() -> Iterator[STLClient]:
    options = ["--captures-folder", "/"]
    with LocalServer(ports=["memory", "memory"], options=options) as server, server.client() as one:
        add_node(one)
        one.routes_add_speaker("there", 65001, NODE, port=0, node=MAC)
        yield one


WRONG_SPEAKERS = [
    ({"name": "there"}, "'there', and a speaker of that name is there"),
    ({"name": "a b"}, "'name' is 'a b'"),
    ({"asn": 0}, "'asn' is 0"),
    ({"hold_time_s": 1}, "'hold_time_s' is 1"),
    ({"hold_time_s": 2}, "'hold_time_s' is 2"),
    ({"router_id": "0.0.0.0"}, "'router_id' is 0.0.0.0"),
    ({"router_id": "x"}, "router_id"),
    ({"port": 0, "node": "02:00:00:00:00:99"}, "no node 02:00:00:00:00:99"),
    ({"port": 9, "node": MAC}, "port"),
    ({"node": MAC}, "port_id"),
    ({"port": 0, "node": MAC, "address": "192.0.2.77"}, "192.0.2.77, which the node has not"),
]
WRONG_SESSIONS = [
    ({"speaker": "nobody"}, "no speaker has the name 'nobody' (there are there)"),
    ({"peer_asn": 0}, "'peer_asn' is 0"),
    ({"peer": "0.0.0.0"}, "'peer' is 0.0.0.0"),
    ({"md5": ""}, "'md5' has 0 bytes"),
    ({"md5": "x" * 81}, "'md5' has 81 bytes"),
    ({"next_hop_ipv4": "2001:db8::1"}, "next_hop_ipv4"),
    ({"next_hop_ipv4": "192.0.2.9"}, "the peer itself, which ignores such routes"),
    ({"families": []}, "'families' is empty"),
    ({"restart_time_s": 5000}, "'restart_time_s' is above 4095"),
]
WRONG_TABLES = [
    ({"from": "range", "first": "198.18.0.0", "count": 1}, "routes.first"),
    ({"from": "range", "first": "255.255.255.0/24", "count": 2}, "past the last address"),
    ({"from": "range", "first": "198.18.0.0/24", "count": 0}, "count 0"),
    ({"from": "range", "first": "198.18.0.0/24", "count": 1, "communities": ["x"]}, "communities' has 'x'"),
    ({"from": "seed", "family": "ipx", "count": 1}, "ipx"),
    ({"from": "mrt", "family": "ipv4", "path": "nowhere.mrt"}, "no such file"),
]


@pytest.mark.parametrize(("fields", "words"), WRONG_SPEAKERS)
def test_a_wrong_speaker_is_refused_by_its_field(
    client: STLClient, fields: dict[str, Any], words: str
) -> None:
    params: dict[str, Any] = {"name": "new", "asn": 65001, "router_id": NODE, **fields}
    with pytest.raises(STLError) as refused:
        client.routes_add_speaker(**params)
    assert words in str(refused.value)


@pytest.mark.parametrize(("fields", "words"), WRONG_SESSIONS)
def test_a_wrong_session_is_refused_by_its_field(
    client: STLClient, fields: dict[str, Any], words: str
) -> None:
    params: dict[str, Any] = {"speaker": "there", "peer": "192.0.2.9", **fields}
    with pytest.raises(STLError) as refused:
        client.routes_add_session(**params)
    assert words in str(refused.value)


@pytest.mark.parametrize(("source", "words"), WRONG_TABLES)
def test_a_wrong_table_is_refused_by_its_field(client: STLClient, source: dict[str, Any], words: str) -> None:
    with pytest.raises(STLError) as refused:
        client.routes_announce("there", "wrong", source)
    assert words in str(refused.value)


def test_a_file_that_was_cut_short_is_refused(client: STLClient, tmp_path: Path) -> None:
    file = tmp_path / "rib.mrt"
    # The head of a record of 100 bytes, and some of these.
    file.write_bytes(bytes(4) + b"\0\x0d\0\x02" + (100).to_bytes(4, "big") + bytes(10))
    with pytest.raises(STLError, match="cut short"):
        client.routes_announce("there", "cut", {"from": "mrt", "family": "ipv4", "path": str(file)})


def test_names_are_not_taken_twice_and_must_be_there(client: STLClient) -> None:
    source = {"from": "range", "first": "198.18.0.0/24", "count": 3}
    client.routes_announce("there", "twice", source)
    with pytest.raises(STLError, match="'twice' is announced already"):
        client.routes_announce("there", "twice", source)
    client.routes_add_session("there", "192.0.2.8")
    with pytest.raises(STLError, match="has a session with it"):
        client.routes_add_session("there", "192.0.2.8")
    client.routes_remove("there", "192.0.2.8")
    with pytest.raises(STLError, match="no session with it"):
        client.routes_remove("there", "192.0.2.8")
    client.routes_withdraw("there", "twice")
    with pytest.raises(STLError, match="no table 'twice'"):
        client.routes_withdraw("there", "twice")
