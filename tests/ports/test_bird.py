"""BIRD of a server: routes to a router of FRR, and what happens when something goes wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLClient, STLError
from allosaur.bird import BirdCFGCreator, ConfigurationException, PyBirdClient
from allosaur.cli.console import _loop
from allosaur.cli.console._session import Settings, Target, opened
from allosaur.server import LocalServer, ServerStartError, find_binary

pytestmark = pytest.mark.usefixtures("networks_work", "bird_is_here")

OPTIONS = ["--bird-port", "0"]
FRR = Path("/usr/lib/frr")
WAIT_S = 60
PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper" / "paper.md"
#: The router of the paper's example, with routes taken from all peers.
BGPD = """
router bgp 65000
 bgp router-id 1.1.1.1
 no bgp ebgp-requires-policy
 neighbor 1.1.1.3 remote-as 65000
 neighbor 1.1.2.3 remote-as 65000
"""


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.fixture
def server() -> Iterator[LocalServer[STLClient]]:
    with LocalServer(ports=["memory", "memory"], options=OPTIONS) as running:
        yield running


def bird_of(server: LocalServer[STLClient]) -> PyBirdClient:
    assert server.bird_port is not None
    return PyBirdClient(ip=server.host, port=server.bird_port)


@pytest.fixture
def bird(server: LocalServer[STLClient]) -> Iterator[PyBirdClient]:
    with bird_of(server) as client:
        yield client


class Router:
    """Daemons of FRR in a namespace: 1.1.1.1/24 and 1.1.2.1/24 on its two links."""

    def __init__(self, network: Any, folder: Path, **configs: str) -> None:
        self._network = network
        self._folder = folder
        self.namespace = network.namespace("frr")
        pairs = [network.veth(self.namespace) for _ in range(2)]
        self.ports = [near for near, _ in pairs]
        self.far = pairs[0][1]
        for number, (_, far) in enumerate(pairs, 1):
            network.run(self.namespace, "ip", "address", "add", f"1.1.{number}.1/24", "dev", far)
        self._processes = []
        for name, config in {"zebra": "", **configs}.items():
            file = folder / f"{name}.conf"
            file.write_text(config)
            command = [str(FRR / name), "-f", str(file), "-i", f"{folder}/{name}.pid"]
            command += [
                "--vty_socket",
                str(folder),
                "-z",
                f"{folder}/zserv.api",
                "-A",
                "127.0.0.1",
                "-P",
                "0",
            ]
            inside = ["ip", "netns", "exec", self.namespace, *command]
            log = (folder / f"{name}.log").open("w")
            self._processes.append(subprocess.Popen(inside, stdout=log, stderr=log))
            wait_until((folder / f"{name}.vty").exists, f"{name} did not start: {folder}/{name}.log")

    def configure(self, *lines: str) -> None:
        """Type lines of configuration, the first two as one."""
        typed = ["configure terminal", " ".join(lines[:2]), *lines[2:]]
        show = ["vtysh", "--vty_socket", str(self._folder)]
        self._network.run(self.namespace, *show, *(word for line in typed for word in ("-c", line)))

    def routes(self, protocol: str) -> dict[str, Any]:
        """The routes of the router's table that a protocol has brought."""
        show = ["vtysh", "--vty_socket", str(self._folder), "-c", f"show ip route {protocol} json"]
        shown: dict[str, Any] = json.loads(self._network.run(self.namespace, *show))
        return shown

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture
def router(network: Any) -> Iterator[Callable[..., Router]]:
    if not (FRR / "bgpd").exists() or shutil.which("vtysh") is None:
        pytest.skip("there is no FRR: install frr")
    routers: list[Router] = []

    def make(**configs: str) -> Router:
        routers.append(Router(network, Path(folder), **configs))
        return routers[-1]

    # The daemons are another user's processes, and their sockets have short names.
    with tempfile.TemporaryDirectory(prefix="frr-") as folder:
        shutil.chown(folder, "frr", "frr")
        yield make
        for one in routers:
            one.stop()


def add_nodes(client: STLClient) -> None:
    """An interface of BIRD's on each port, as in the paper."""
    client.reset()
    client.set_service_mode()
    for port in (0, 1):
        client.set_bird_node(port, f"00:00:00:01:0{port}:06", ipv4=f"1.1.{port + 1}.3", ipv4_subnet=24)


def listing10() -> str:
    """The configuration of the paper's listing 10, to its letter."""
    if not PAPER.exists():
        pytest.skip(f"the paper is not at {PAPER}")
    text = PAPER.read_text(encoding="utf-8")
    lines = text[text.index("router id 100.100.100.100;") : text.index("Listing 10: BIRD")].splitlines()
    config = "\n".join(line for line in lines if not line.startswith("```"))
    # The last brace is beyond the end of the page.
    return config + "}" * (config.count("{") - config.count("}")) + "\n"


def test_the_router_learns_the_eleven_routes_of_the_paper(router: Callable[..., Router]) -> None:
    frr = router(bgpd=BGPD)
    config = listing10()
    with (
        LocalServer(ports=frr.ports, options=OPTIONS) as server,
        server.client() as client,
        bird_of(server) as bird,
    ):
        add_nodes(client)
        assert bird.set_config(config) == "Configured successfully"
        bird.check_protocols_up(["my_bgp1", "my_bgp2"], timeout=WAIT_S)
        expected = {f"42.42.42.{last}/32" for last in range(11)}
        wait_until(lambda: set(frr.routes("bgp")) == expected, "the routes did not come")
        hops = {hop["ip"] for route in frr.routes("bgp").values() for hop in route[0]["nexthops"]}
        assert "1.1.1.3" in hops
        bird.set_empty_config()
        wait_until(lambda: not frr.routes("bgp"), "the routes did not go")


@pytest.mark.parametrize(
    ("daemon", "config", "protocol", "routes"),
    [
        ("ripd", "router rip\n network 1.1.1.0/24\n", "rip", 1_000),
        ("ospfd", "router ospf\n network 1.1.1.0/24 area 0\n", "ospf", 1_000),
    ],
)
def test_the_router_learns_many_routes(
    router: Callable[..., Router], daemon: str, config: str, protocol: str, routes: int
) -> None:
    frr = router(**{daemon: config})
    creator = BirdCFGCreator()
    creator.add_many_routes("42.42.0.0", routes, "1.1.1.3")
    data = "ipv4 { import all; export all; };"
    if protocol == "ospf":
        data = f'{data} area 0 {{ interface "eth0*" {{ type ptp; hello 1; dead 4; }}; }};'
        frr.configure("interface", frr.far, "ip ospf network point-to-point", "ip ospf hello-interval 1")
        frr.configure("interface", frr.far, "ip ospf dead-interval 4")
    else:
        data = f'{data} interface "eth0*" {{ update time 5; }};'
    creator.add_protocol(protocol, "dut", data)
    with (
        LocalServer(ports=frr.ports, options=OPTIONS) as server,
        server.client() as client,
        bird_of(server) as bird,
    ):
        add_nodes(client)
        bird.set_config(creator.build_config())
        wait_until(
            lambda: sum(route.startswith("42.42.") for route in frr.routes(protocol)) == routes,
            f"{routes} routes did not come by {protocol}",
        )


def test_bird_that_is_killed_comes_back_with_its_configuration(
    server: LocalServer[STLClient], bird: PyBirdClient
) -> None:
    creator = BirdCFGCreator()
    creator.add_many_routes("42.42.42.0", 11, '"lo"')
    config = creator.build_config()
    bird.set_config(config)
    before = bird.get_status()
    os.kill(before["pid"], signal.SIGKILL)
    wait_until(lambda: bird.get_status()["pid"] not in (before["pid"], None), "BIRD did not come back")
    assert bird.get_status()["restarts"] == before["restarts"] + 1
    assert bird.get_config() == config
    assert "bird_cfg_routes" in bird.get_protocols_info()
    assert "BIRD has ended" in server.stderr


def test_who_asks_a_bird_that_was_just_killed_is_answered(bird: PyBirdClient) -> None:
    os.kill(bird.get_status()["pid"], signal.SIGKILL)
    assert bird.set_config("router id 1.1.1.3;\nprotocol device {\n}\n") == "Configured successfully"
    assert bird.get_status()["restarts"] == 1


def test_a_configuration_with_which_bird_ends_again_and_again_is_given_up(bird: PyBirdClient) -> None:
    config = "router id 1.1.1.3;\nprotocol device {\n}\n"
    bird.set_config(config)
    for ended in range(1, 8):
        assert (bird.get_config(), bird.get_status()["state"]) == (config, "running")
        os.kill(bird.get_status()["pid"], signal.SIGKILL)
        # Who asks does not wait until it is BIRD's turn.
        bird.get_protocols_info()
        assert bird.get_status()["restarts"] == ended
    assert bird.get_status()["state"] == "config_given_up"
    assert "100.100.100.100" in bird.get_config()
    assert "Configured successfully" in bird.set_config(config)
    assert (bird.get_config(), bird.get_status()["state"]) == (config, "running")


def test_the_console_has_the_actions_of_the_command(
    server: LocalServer[STLClient], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = Target(server.host, server.rpc_port, server.pub_port)
    file = tmp_path / "routes.conf"

    def typed(session: Any, line: str, code: int = 0) -> str:
        capfd.readouterr()
        assert _loop.line(f"{line} --bird-port {server.bird_port}", session) == code
        out, err = capfd.readouterr()
        return out + err

    with opened(target, Settings()) as session:
        assert "running" in typed(session, "bird status")
        file.write_text("router id 1.1.1.3;\nprotocol device {\n}\n")
        assert "Configured successfully" in typed(session, f"bird set {file}")
        assert "1.1.1.3" in typed(session, "bird config")
        file.write_text("no such thing;\n")
        assert f"{file}:1" in typed(session, f"bird set {file}", 2)
        typed(session, "bird clear")
        assert "1.1.1.3" not in typed(session, "bird config")
    with opened(target, Settings(readonly=True)) as session:
        assert "read-only" in typed(session, "bird clear", 3)
        assert "running" in typed(session, "bird status")


def test_nothing_is_left_of_a_server_that_is_killed(network: Any) -> None:
    with LocalServer(ports=["memory", "memory"], options=OPTIONS) as server:
        with bird_of(server) as bird:
            status = bird.get_status()
        assert server.pid is not None
        pid = server.pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{status['pid']}/exe").exists(), "BIRD has outlived its server")
    with LocalServer(ports=["memory", "memory"]):
        gone = [Path("/run/netns") / status["namespace"], Path(f"/run/allosaur/bird-{pid}")]
        wait_until(lambda: not any(path.exists() for path in gone), f"{gone} is left")


def test_a_server_that_ends_takes_bird_along() -> None:
    with LocalServer(ports=["memory", "memory"], options=OPTIONS) as server:
        with bird_of(server) as bird:
            status = bird.get_status()
        pid = server.pid
    assert not Path(f"/proc/{status['pid']}/exe").exists()
    assert not (Path("/run/netns") / status["namespace"]).exists()
    assert not Path(f"/run/allosaur/bird-{pid}").exists()


def test_what_bird_refuses_is_told_in_its_words_and_the_old_one_stays(bird: PyBirdClient) -> None:
    good = "router id 1.1.1.3;\nprotocol device {\n}\n"
    bird.set_config(good)
    with pytest.raises(ConfigurationException, match=r"^bird\.conf:2:\d+ .*syntax error"):
        bird.set_config("router id 1.1.1.3;\nprotocol nonsense {\n}\n")
    assert bird.get_config() == good


def test_a_fragment_with_a_wrong_md5_is_refused(bird: PyBirdClient) -> None:
    config = bird.get_config()
    first = {"handler": bird.handler, "fragment": "router id 1.1.1.3;\n", "frag_first": True, "md5": "0" * 32}
    assert bird._call("set_config", **first) == "send_another_frag"
    with pytest.raises(STLError, match=r"'md5' is 0{32}, and the fragments that arrived have [0-9a-f]{32}"):
        bird._call("set_config", handler=bird.handler, fragment="", frag_last=True)
    assert bird.get_config() == config


def test_bird_of_a_client_that_is_gone_is_taken_by_force(server: LocalServer[STLClient]) -> None:
    gone = bird_of(server)
    gone.connect()
    gone.acquire()
    gone._close()
    other = bird_of(server)
    other.connect()
    with pytest.raises(STLError, match=r"another client has BIRD: acquire it by force"):
        other.acquire()
    other.acquire(force=True)
    other.set_empty_config()
    other.release()
    other.disconnect()


def test_routes_by_the_neighbor_itself_are_warned_of(bird: PyBirdClient) -> None:
    creator = BirdCFGCreator()
    creator.add_simple_bgp()
    creator.add_route("42.42.42.0/24", "1.1.1.1")
    answer = bird.set_config(creator.build_config())
    assert answer.startswith("Configured successfully\nwarning: static routes 'via 1.1.1.1'")


def test_the_command_line_configures_bird(server: LocalServer[STLClient], tmp_path: Path) -> None:
    at = ["--server", f"{server.host}:{server.bird_port}"]

    def bird(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "allosaur", "bird", *words, *at]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    file = tmp_path / "routes.conf"
    file.write_text("router id 1.1.1.3;\nprotocol device mine {\n}\n")
    assert bird("set", str(file)).stdout == "Configured successfully\n"
    assert bird("config").stdout == file.read_text()
    shown = bird("status").stdout
    assert shown.startswith("BIRD ")
    assert "mine" in shown
    file.write_text("router id 1.1.1.3;\nnonsense;\n")
    refused = bird("set", str(file))
    assert refused.returncode == 2
    assert f"{file}:2:" in refused.stderr, refused.stderr
    assert "mine" in bird("config").stdout
    assert json.loads(bird("clear", "--json").stdout)["answer"] == "Configured successfully"
    assert bird("set", str(tmp_path / "none")).returncode == 2
    with bird_of(server):
        assert "--force" in bird("clear").stderr
        assert bird("clear", "--force").returncode == 0


def test_a_server_without_bird_says_so() -> None:
    with LocalServer(ports=["memory", "memory"]) as server, server.client() as client:
        assert server.bird_port is None
        client.reset()
        client.set_service_mode()
        with pytest.raises(STLError, match=r"this server has no BIRD: start it with --bird-server"):
            client.set_bird_node(0, "02:00:00:00:00:01", ipv4="192.0.2.1", ipv4_subnet=24)


def test_bird_needs_its_program_and_a_privilege(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs"]
    command = [*lacking, "--reuid=65534", "--regid=65534", "--clear-groups", str(find_binary())]
    refused = subprocess.run(
        [*command, "serve", *OPTIONS, "--rpc-port", "0", "--pub-port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode == 3
    assert "sudo" in refused.stderr, refused.stderr
    # As on a system without it: nothing is in the folders where it may be.
    hidden = ["unshare", "--mount", "sh", "-c"]
    script = 'mount -t tmpfs none /usr/sbin && PATH=/none exec "$0" "$@"'
    refused = subprocess.run(
        [*hidden, script, str(find_binary()), "serve", *OPTIONS, "--rpc-port", "0", "--pub-port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode == 3
    assert "BIRD is not installed: `sudo apt-get install bird2`" in refused.stderr, refused.stderr
    with pytest.raises(ServerStartError, match="both 4509"):
        LocalServer(ports=["memory"], options=["--bird-port", "4509", "--emu-port", "4509"]).start()
