"""`allosaur node` and `ns` of the console, against a server with ports in memory."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import NSCmds, STLClient, STLError
from allosaur.cli._main import main
from allosaur.cli.console import _loop
from allosaur.cli.console._session import Settings, Target, opened
from allosaur.cli.nodes import _batch
from allosaur.server import LocalServer, find_binary

pytestmark = pytest.mark.usefixtures("networks_work")

FIRST, SECOND = "02:00:00:00:00:01", "02:00:00:00:00:02"
UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]

#: Whoever has the address says that nothing listens there.
REACH = """
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(60)
sock.connect((sys.argv[1], 9))
sock.send(b"x")
try:
    sock.recv(1)
except ConnectionRefusedError:
    print("it answers")
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer[STLClient]]:
    with LocalServer(ports=["memory", "memory"]) as running:
        yield running


class Node:
    """`allosaur node ...` in this process: what it printed, or its JSON."""

    def __init__(self, server: LocalServer[STLClient], capfd: pytest.CaptureFixture[str]) -> None:
        self._where = ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]
        self._capfd = capfd

    def __call__(self, action: str, *words: str, code: int = 0) -> str:
        self._capfd.readouterr()
        ended = main(["node", action, *self._where, *words])
        out, self.err = self._capfd.readouterr()
        assert ended == code, (out, self.err)
        return out

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(words[0], "--json", *words[1:], code=code))

    def refused(self, *words: str, code: int = 2) -> str:
        self(*words, code=code)
        (line,) = (one for one in self.err.splitlines() if one.startswith("error: "))
        return line


@pytest.fixture
def node(server: LocalServer[STLClient], capfd: pytest.CaptureFixture[str]) -> Iterator[Node]:
    command = Node(server, capfd)
    yield command
    command("clear")


def test_a_node_is_added_listed_entered_and_removed(node: Node) -> None:
    added = node("add", FIRST, "--ipv4", "192.0.2.1/24", "--ipv6", "2001:db8::1", "--vlan", "100,7")
    assert f"Added node {FIRST} on port 0: allosaur-" in added
    (told,) = node.json("list")["nodes"]
    assert told["port"] == 0
    assert told["vlan"]["tags"] == [100, 7]
    assert (told["ipv4"]["src"], told["ipv6"]["src"]) == ("192.0.2.1", "2001:db8::1")
    listed = node("list", "--port", "0")
    assert all(word in listed for word in (FIRST, "100,7", "192.0.2.1", "2001:db8::1", told["linux-ns"]))
    for name in (FIRST, FIRST.upper(), "192.0.2.1", "2001:DB8::1", told["linux-ns"]):
        assert FIRST in node("exec", name, "--", "ip", "link", "show", "eth0")
    assert f"Removed node {FIRST} of port 0." in node("remove", "192.0.2.1")
    assert "There are no nodes." in node("list")


def test_nodes_reach_each_other_and_programs_end_as_they_end(node: Node) -> None:
    node("add", FIRST, "--ipv4", "192.0.2.1/24")
    node("add", SECOND, "--ipv4", "192.0.2.2", "--gateway", "192.0.2.1", "--port", "1")
    assert node("exec", FIRST, "--", sys.executable, "-c", REACH, "192.0.2.2") == "it answers\n"
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"
    node("exec", FIRST, "--", sys.executable, "-c", script, code=7)
    assert node.err == "err\n"
    ended = node.json("exec", FIRST, "--", sys.executable, "-c", script, "--json", code=7)
    assert (ended["ok"], ended["exit_code"], ended["stdout"], ended["stderr"]) == (False, 7, "out\n", "err\n")
    assert ended["program"][-1] == "--json", "what stands behind -- is the program's"
    node("exec", FIRST, "--", "sh", "-c", "kill -KILL $$", code=128 + 9)
    counted = node.json("counters", "--port", "0")["counters"]["0"]
    assert counted["tx_pkts"] > 0
    assert "tx_pkts" in node("counters")
    node("counters", "--clear")
    assert "tx_pkts" not in node.json("counters", "-p", "0")["counters"]["0"]


def test_many_are_added_with_addresses_that_count_up(node: Node) -> None:
    words = ("--ipv4", "10.0.0.254/16", "--ipv6", "2001:db8::ff", "--count", "4")
    added = node.json("add", "02:00:00:00:00:fe", *words)["nodes"]
    assert [one["ether"]["src"][-5:] for one in added] == ["00:fe", "00:ff", "01:00", "01:01"]
    assert [one["ipv4"]["src"] for one in added] == ["10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1"]
    assert [one["ipv6"]["src"] for one in added][-1] == "2001:db8::102"
    assert "and 1 more" in node("add", "02:00:00:00:02:00", "--count", "4")
    assert node.json("clear", "--port", "0")["removed"] == {"0": 8}


def test_nodes_may_share_a_namespace(node: Node) -> None:
    (first,) = node.json("add", FIRST, "--shared", "new", "--ipv4", "192.0.2.1/24")["nodes"]
    words = ("--shared", first["linux-ns"], "--ipv4", "192.0.2.2/24", "--gateway", "192.0.2.254")
    (second,) = node.json("add", SECOND, *words)["nodes"]
    assert (second["linux-ns"], second["is-shared-ns"]) == (first["linux-ns"], True)
    assert "via 192.0.2.254" in node("exec", SECOND, "--", "ip", "route", "show", "default")
    assert "2 nodes are" in node.refused("exec", first["linux-ns"], "--", "true")
    assert "no shared namespace 'x'" in node.refused("add", "02:00:00:00:00:03", "--shared", "x", code=3)


def test_what_is_wrong_is_named_and_changes_nothing(node: Node) -> None:
    node("add", FIRST, "--ipv4", "192.0.2.1/24")
    twice = node.refused("add", FIRST, "--ipv4", "192.0.2.9/24")
    assert f"has a node {FIRST} already" in twice
    assert f"allosaur node remove {FIRST} -p 0" in twice
    assert "'5000' is no VLAN" in node.refused("add", SECOND, "--vlan", "5000")
    assert "vlans' has the tag 4095; give 1 to 4094" in node.refused("add", SECOND, "--vlan", "4095", code=3)
    assert "'filter'" in node.refused("add", SECOND, "--filter", "no such filter", "--count", "3", code=3)
    assert "no host's" in node.refused("add", "01:00:00:00:00:01", code=3)
    assert "not a MAC address" in node.refused("add", "router1")
    assert "is no IPv4 address" in node.refused("add", SECOND, "--ipv4", "192.0.2.1/33")
    assert "give --gateway, or the bits" in node.refused("add", SECOND, "--ipv4", "192.0.2.1")
    assert "give it with --ipv4" in node.refused("add", SECOND, "--gateway", "192.0.2.1")
    assert "no address 2 above" in node.refused(
        *("add", SECOND, "--ipv4", "255.255.255.254/8", "--count", "3")
    )
    assert "no port 9" in node.refused("add", SECOND, "--port", "9")
    assert "no port has a node 192.0.2.77" in node.refused("exec", "192.0.2.77", "--", "true")
    assert "write the program behind --" in node.refused("exec", FIRST)
    assert "there is no program /none" in node.refused("exec", FIRST, "--", "/none", code=127)
    (left,) = node.json("list")["nodes"]
    assert left["ipv4"]["src"] == "192.0.2.1"


def test_a_namespace_that_somebody_else_made_stays_theirs(node: Node) -> None:
    (first,) = node.json("add", FIRST)["nodes"]
    stem, _, number = first["linux-ns"].rpartition("-")
    theirs = f"{stem}-{int(number) + 1}"
    subprocess.run(["ip", "netns", "add", theirs], check=True)
    try:
        refused = node.refused("add", SECOND, code=3)
        assert f"'{theirs}' is there already" in refused
        assert f"ip netns delete {theirs}" in refused
        assert Path("/run/netns", theirs).exists()
    finally:
        subprocess.run(["ip", "netns", "delete", theirs], check=True)
    node("add", SECOND)


def test_nodes_are_listed_and_entered_whoever_owns_the_port(
    node: Node, server: LocalServer[STLClient]
) -> None:
    node("add", FIRST)
    with server.client() as client:
        client.acquire(ports=[0])
        assert node.json("list")["nodes"][0]["ether"]["src"] == FIRST
        node("exec", FIRST, "--", "true")
        assert "cannot take port 0" in node.refused("add", SECOND, code=3)
        # A batch of the owner's does not hold the list up.
        client.set_service_mode([0])
        cmds = NSCmds()
        for number in range(64):
            cmds.add_node(f"02:00:00:00:04:{number:02x}")
        client.set_namespace_start(0, cmds)
        assert len(client.get_ns_nodes(0)) < 65
        client.wait_for_async_results(0)
        assert len(client.get_ns_nodes(0)) == 65


def test_a_batch_that_is_interrupted_is_cancelled(
    server: LocalServer[STLClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    from allosaur.cli._errors import CommandError
    from allosaur.cli._interrupt import Interrupt

    monkeypatch.setattr(Interrupt, "__bool__", lambda self: True)
    monkeypatch.setattr(Interrupt, "exit_code", 130, raising=False)
    with server.client() as client, contextlib.ExitStack() as stack:
        client.reset()
        stack.enter_context(client.service_mode([0]))
        cmds = NSCmds()
        for number in range(200):
            cmds.add_node(f"02:00:00:00:05:{number:02x}")
        with pytest.raises(CommandError, match=r"of 200 commands; the nodes that were added"):
            _batch.done(client, 0, cmds)
        assert len(client.get_ns_nodes(0)) < 200
        client.namespace_remove_all([0])
        with pytest.raises(STLError, match=r"failed|no node"):
            client.set_namespace(0, "remove_node", mac=FIRST)


def test_the_console_has_the_same(server: LocalServer[STLClient], capfd: pytest.CaptureFixture[str]) -> None:
    target = Target(server.host, server.rpc_port, server.pub_port)

    def typed(session: Any, line: str, code: int = 0) -> str:
        capfd.readouterr()
        assert _loop.line(line, session) == code
        out, err = capfd.readouterr()
        return out + err

    with opened(target, Settings()) as session:
        assert "`service -p 0`" in typed(session, f"ns add {FIRST}", 3)
        typed(session, "service -p 0")
        assert "allosaur-" in typed(session, f"ns add {FIRST} -p 0 --ipv4 192.0.2.1/24")
        assert f"`ns remove {FIRST} -p 0`" in typed(session, f"ns add {FIRST}", 2)
        assert "192.0.2.1" in typed(session, "ns list")
        assert FIRST in typed(session, "ns exec 192.0.2.1 -- ip link show eth0")
        assert "exit code 1" in typed(session, "ns exec 192.0.2.1 -- false", 1)
        assert "Port 0: removed 1 nodes." in typed(session, "ns clear -p 0")


def test_a_server_of_flows_has_nodes_by_command_too(capfd: pytest.CaptureFixture[str]) -> None:
    with LocalServer(ports=["memory", "memory"], stateful=True) as server:
        node = Node(server, capfd)
        node("add", FIRST, "--ipv4", "192.0.2.1/24")
        node("add", SECOND, "--ipv4", "192.0.2.2/24", "--port", "1")
        assert node("exec", "192.0.2.1", "--", sys.executable, "-c", REACH, "192.0.2.2") == "it answers\n"
        assert len(node.json("list")["nodes"]) == 2
        node("clear")


def test_a_server_without_privilege_names_what_is_missing(capfd: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may be somebody else")
    command = [str(find_binary()), "serve", "--ports", "memory,memory", "--rpc-port", "0", "--pub-port", "0"]
    with subprocess.Popen([*UNPRIVILEGED, *command], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        ready = dict(word.split("=") for word in running.stdout.readline().split()[1:] if "=" in word)
        rpc, pub = (ready[name].rsplit(":", 1)[1] for name in ("rpc", "pub"))
        where = ["--server", f"127.0.0.1:{rpc}", "--pub-port", pub]
        assert main(["node", "add", FIRST, *where]) == 3
        err = capfd.readouterr().err
        assert main(["node", "list", *where]) == 0
        running.terminate()
    assert "CAP_NET_ADMIN and CAP_SYS_ADMIN" in err
    assert 'sudo env "PATH=$PATH" allosaur server' in err
