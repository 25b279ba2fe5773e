"""A transcript of each command of the stateful console, on in-memory ports, in one session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from allosaur.cli._modes import STATEFUL, STATELESS
from allosaur.cli.console import _line, _loop
from allosaur.cli.console._session import Session, Settings, Target, opened
from allosaur.cli.console.commands import of_mode
from allosaur.server import LocalServer

PROFILE = """
from allosaur.api import *

class Two:
    def get_profile(self, size=200, **kwargs):
        clients, servers = ["16.0.0.1", "16.0.0.9"], ["48.0.0.1", "48.0.0.9"]
        ip_gen = ASTFIPGen(dist_client=ASTFIPGenDist(clients), dist_server=ASTFIPGenDist(servers))
        asks, answers = ASTFProgram(), ASTFProgram()
        asks.send(b"GET /")
        asks.recv(size)
        answers.recv(5)
        answers.send(b"*" * size)
        templates = [
            ASTFTemplate(
                client_template=ASTFTCPClientTemplate(program=asks, ip_gen=ip_gen, port=port, cps=5),
                server_template=ASTFTCPServerTemplate(program=answers, assoc=ASTFAssociationRule(port)),
                tg_name=name,
            )
            for port, name in ((80, "down"), (81, "up"))
        ]
        return ASTFProfile(default_ip_gen=ip_gen, templates=templates)

def register():
    return Two()
"""
ASKED = """
import argparse

class Asked:
    def get_profile(self, tunables, **kwargs):
        parser = argparse.ArgumentParser()
        parser.add_argument("--size", type=int, default=64)
        parser.parse_args(tunables)

def register():
    return Asked()
"""
TUNNEL = "--c_start 16.0.0.1 --c_end 16.0.0.9 --teid 1 --sport 5000 --src_ip 1.1.1.1 --dst_ip 2.2.2.2"
TOPOLOGY = """
from allosaur.api import *

def get_topo(**kwargs):
    topo = ASTFTopology()
    topo.add_vif(port_id="0.2", src_mac="02:00:00:00:00:01", src_ipv4="16.0.0.1", vlan=20)
    topo.add_gw(port_id="0.2", src_start="16.0.0.0", src_end="16.0.0.255", dst="02:00:00:00:00:02")
    return topo
"""

TRANSCRIPT: list[tuple[str, int, list[str]]] = [
    ("help", 0, ["Stateful:", "template_group"]),
    ("mode", 0, ["The console is stateful."]),
    ("start -f {profile} --clients 1", 2, ["--clients 1: is not a client port"]),
    ("start -f nothing", 2, ["no such file"]),
    ("start -f {folder}/asked.py -t -h", 0, ["--size SIZE"]),
    ("start -f {profile} -m fast", 2, ["invalid float value"]),
    ("start -f {profile} -m 10 -l 20 -t size=300", 0, ["Starting traffic of profile _:", "[SUCCESS]"]),
    ("start -f {profile} --pid second -m 1 -d 1 --nc", 0, ["Starting traffic of profile second:"]),
    ("profiles", 0, ["Profile states", "second", "STATE_TX"]),
    ("update -m 20", 0, ["Updating traffic of profile _:"]),
    ("update -m 20 --pid nobody", 3, ["there is no profile 'nobody'"]),
    ("stats", 0, ["Global Statistics", "Port Statistics", "ASTF"]),
    ("stats -g", 0, ["total_cps."]),
    ("stats -p --port 0", 0, ["opackets"]),
    ("stats --ps", 0, ["link status"]),
    (
        "stats -a",
        0,
        ["client", "server", "tcps_connects", "m_active_flows", "How flows ended", "completed flows"],
    ),
    ("stats --za --pid _", 0, ["Profile ID : _", "tcps_rexmttimeo"]),
    ("stats -a --pid nobody", 2, ["--pid nobody: is no profile; there are _"]),
    ("stats -p --pid _", 2, ["--pid: goes with -a or --za"]),
    ("stats -l", 0, ["Latency Statistics", "Jitter"]),
    ("stats --lh", 0, ["Latency Histogram"]),
    ("stats --lc", 0, ["m_tx_pkt_ok"]),
    ("stats -s", 0, ["No packet group"]),
    ("stats -c", 0, ["Cpu Util(%)"]),
    ("template_group names", 0, ["Template groups: 2", "down", "up"]),
    ("template_group stats --name down", 0, ["tcps_connattempt"]),
    ("template_group stats --name dwn", 2, ["did you mean down?"]),
    ("template_group", 2, ["missing"]),
    ("latency stop", 0, ["Latency stop:"]),
    ("latency start --src 16.0.0.1 --dst 48.0.0.1 -m 10", 0, ["Latency start:"]),
    ("latency update -m 20", 0, ["Latency update:"]),
    ("latency", 0, ["Latency Statistics"]),
    ("latency hist", 0, ["Latency Histogram"]),
    ("latency counters", 0, ["m_tx_pkt_ok"]),
    ("latency start --src 16.0.0.1", 2, ["--dst is missing"]),
    ("start_stl -f imix -p 0 -m 100pps", 0, ["Starting traffic on port(s) [0._]:"]),
    ("update_stl -m 200pps", 0, ["Updating traffic on port(s) [0._]:"]),
    ("stats_stl -p", 0, ["opackets"]),
    ("streams", 0, ["Ethernet:IP:UDP"]),
    ("stop_stl --remove", 0, ["Stopping traffic on port(s) [0._]:"]),
    ("black_list set --macs 02:00:00:00:00:99 --ipv4 16.0.0.200 --upload", 0, ["Black list set:"]),
    ("black_list get", 0, ["Black list get:"]),
    ("black_list", 0, ["02:00:00:00:00:99", "16.0.0.200"]),
    ("black_list remove --ipv4 16.0.0.200", 0, ["Black list remove:"]),
    ("black_list upload", 0, ["[SUCCESS]"]),
    ("black_list clear --upload", 0, ["[SUCCESS]"]),
    ("black_list show", 0, ["It is empty."]),
    ("black_list set", 2, ["give --macs or --ipv4"]),
    ("clear", 0, ["Clearing stats of port(s) [0, 1]"]),
    ("ping", 0, ["Pinging RPC server"]),
    ("wait -t 1", 3, ["did not finish within"]),
    ("stop --pid second --remove", 0, ["Stopping traffic of profile second:"]),
    ("stop --remove", 0, ["Stopping traffic of profile _:"]),
    ("service", 0, ["Enabling service mode on all ports"]),
    ("service --no-tcp-udp", 0, ["Enabling filtered service mode"]),
    ("service --off", 0, ["Disabling service mode"]),
    ("topo", 0, ["The topology is empty."]),
    ("topo load -f nothing.py", 2, ["no such file"]),
    ("topo load -f {topology}", 0, ["Topology load:"]),
    ("topo show", 0, ["16.0.0.1"]),
    ("topo save -f {folder}/saved.json", 0, ["Topology save:"]),
    ("topo resolve", 0, ["Topology resolve:"]),
    ("topo clear", 0, ["Topology clear:"]),
    ("tunnels_topo", 3, ["has no tunnels"]),
    ("tunnels_topo load -f nothing.py", 2, ["no such file"]),
    ("tunnels_topo clear", 3, ["has no tunnels"]),
    ("tunnel --type gtpu", 3, ["tunnel"]),
    (f"update_tunnel --type gtpu {TUNNEL}", 3, ["tunnel"]),
    ("tunnel --type vxlan", 2, ["'vxlan' is none of gtpu"]),
    (f"update_tunnel --type gtpu --ipv6 {TUNNEL}", 2, ["--src_ip 1.1.1.1: is not IPv6"]),
    ("tui -l", 3, ["is not a terminal"]),
    ("release -p 0", 2, ["stateful traffic has all ports or none"]),
    ("release", 0, ["Released ports 0, 1"]),
    ("acquire", 0, ["Acquired the server"]),
    ("reset", 0, ["Reset the server"]),
    ("mode stateless", 0, ["The console is stateless now"]),
    ("start -f imix -p 0", 0, ["Starting traffic on port(s) [0._]:"]),
    ("stop --remove", 0, ["Stopping traffic"]),
    ("mode stateful", 0, ["The console is stateful now"]),
]
OF_BOTH = set(of_mode(STATEFUL)) & {
    name for name, one in of_mode(STATELESS).items() if type(one) is type(of_mode(STATEFUL).get(name))
}
"""Commands that are the same in both consoles: the other transcript has them."""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with LocalServer(ports=["memory", "memory"], cores=1) as server:
        target = Target(server.host, server.rpc_port, server.pub_port)
        with opened(target, Settings(), STATEFUL) as session:
            yield session


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("console")
    (made / "two.py").write_text(PROFILE, encoding="utf-8")
    (made / "asked.py").write_text(ASKED, encoding="utf-8")
    (made / "topology.py").write_text(TOPOLOGY, encoding="utf-8")
    return made


@pytest.mark.parametrize(("line", "code", "shown"), TRANSCRIPT, ids=[line for line, _, _ in TRANSCRIPT])
def test_transcript(
    line: str, code: int, shown: list[str], session: Session, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = line.replace("{profile}", f"{folder}/two.py").replace("{topology}", f"{folder}/topology.py")
    assert _loop.line(text.replace("{folder}", str(folder)), session) == code
    out, err = capsys.readouterr()
    for one in shown:
        assert one in out + err, f"{one!r} is not in what {line!r} printed:\n{out}\n{err}"
    assert (code != 0) == err.startswith("error: "), err
    assert "defect" not in err
    if line.startswith("start -f {profile} -m 10"):
        time.sleep(0.5)  # so that there is something to count


def test_every_command_is_in_the_transcript() -> None:
    tried = {line.split()[0] for line, _, _ in TRANSCRIPT}
    assert set(of_mode(STATEFUL)) - OF_BOTH - tried == set()


def test_the_example_of_each_command_is_one() -> None:
    for command in of_mode(STATEFUL).values():
        name, *rest = _line.words(command.example, of_mode(STATEFUL))
        assert name == command.name
        assert _line.parser_of(command).parse_known_args(rest)[1] == []
