"""The stateful client against the real server on in-memory ports: runs, counters, groups, what is beside;
the examples, the names of TRex, and the listings of the paper as they are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import allosaur
import pytest
from allosaur import (
    ASTFAssociationRule,
    ASTFClient,
    ASTFGlobalInfo,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
    STLClient,
    STLError,
    STLPktBuilder,
    STLStream,
    STLTXSingleBurst,
)
from allosaur.api import ICMP, IP, Ether
from allosaur.server import LocalServer

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "profiles" / "stateful").glob("*.py"))
ASK = b"GET / HTTP/1.1\r\n\r\n"
ANSWER_BYTES = 20_000
SIDES = ("client", "server")
#: Long enough for anything on this machine, however busy; only what is broken takes so long.
WAIT_S = 60


@pytest.fixture(scope="module")
def running() -> Iterator[LocalServer]:
    """A stateful server for all tests of this file: each begins with a reset."""
    try:
        from allosaur.server import find_binary

        find_binary()
    except STLError as error:
        pytest.skip(f"no server binary: {error}")
    with LocalServer(stateful=True) as server:
        yield server


@pytest.fixture
def live(running: LocalServer, fits_the_schema: None) -> Iterator[Any]:
    with running.client(username="alice") as connected:
        connected.reset()
        yield connected


def pools() -> ASTFIPGen:
    return ASTFIPGen(
        dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
        dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
    )


def template(port: int = 80, name: str | None = None, cps: float = 100, **client: Any) -> ASTFTemplate:
    """A request and an answer over TCP."""
    asks, answers = ASTFProgram(), ASTFProgram()
    asks.send(ASK)
    asks.recv(ANSWER_BYTES)
    answers.recv(len(ASK))
    answers.send(b"*" * ANSWER_BYTES)
    rule = client.pop("rule", ASTFAssociationRule(port=port))
    return ASTFTemplate(
        client_template=ASTFTCPClientTemplate(program=asks, ip_gen=pools(), port=port, cps=cps, **client),
        server_template=ASTFTCPServerTemplate(program=answers, assoc=rule),
        tg_name=name,
    )


def http(*templates: ASTFTemplate) -> ASTFProfile:
    info = ASTFGlobalInfo()
    # Without delayed acknowledgments a machine that stands still for long looks not like loss.
    info.tcp.no_delay_counter = 1
    return ASTFProfile(
        default_ip_gen=pools(),
        default_c_glob_info=info,
        default_s_glob_info=info,
        templates=list(templates) or [template()],
    )


def few(count: int, port: int = 80) -> ASTFProfile:
    """So many connections in all, quickly."""
    return http(template(port, cps=1000, limit=count))


def run_to_the_end(client: ASTFClient, duration: float = 60, pid: str = "_", **start: Any) -> dict[str, Any]:
    """Start, wait, and give the counters. The duration is the most that it may take where a limit ends it."""
    client.start(duration=duration, pid_input=pid, **start)
    client.wait_on_traffic(timeout=WAIT_S + max(duration, 0), profile_id=pid)
    return client.get_traffic_stats(pid_input=pid)


def until(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def no_errors(client: ASTFClient, traffic: dict[str, Any]) -> None:
    failed, errors = client.is_traffic_stats_error(traffic)
    assert not failed, {side: {name: traffic[side][name] for name in names} for side, names in errors.items()}


def whole(client: ASTFClient, traffic: dict[str, Any], flows: int) -> None:
    """So many flows, all of them good to the last byte."""
    no_errors(client, traffic)
    ours, theirs = (traffic[side] for side in SIDES)
    assert ours["tcps_connattempt"] == ours["tcps_connects"] == ours["tcps_closed"] == flows
    assert theirs["tcps_accepts"] == theirs["tcps_connects"] == theirs["tcps_closed"] == flows
    assert ours["tcps_sndbyte"] == theirs["tcps_rcvbyte"] == flows * len(ASK)
    assert theirs["tcps_sndbyte"] == ours["tcps_rcvbyte"] == flows * ANSWER_BYTES
    assert ours["m_active_flows"] == theirs["m_active_flows"] == 0


# One profile


def test_connections_are_good_to_the_last_byte(live: Any) -> None:
    live.load_profile(few(300))
    whole(live, run_to_the_end(live), 300)


def test_segments_that_arrive_together_are_handled_together(live: Any) -> None:
    live.load_profile(few(300))
    client = run_to_the_end(live)["client"]
    # Of each answer at least the first segment comes alone, as it acknowledges the question.
    assert 0 < client["tcps_rcvoffloads"] <= client["tcps_rcvpack"] - 300


def test_a_limit_ends_a_run_and_a_duration_another(live: Any) -> None:
    live.load_profile(http())
    traffic = run_to_the_end(live, duration=0.5)
    rates = live.get_flow_rates()
    flows = traffic["client"]["tcps_connattempt"]
    assert rates["begun"] == rates["established"] == flows
    # 100 a second for half a second, the first at once.
    assert flows + rates["missed"] == pytest.approx(50, abs=1)
    whole(live, traffic, flows)


def test_states_that_a_profile_goes_through(live: Any) -> None:
    assert live.get_profiles_state() == {"_": "STATE_IDLE"}
    live.load_profile(http())
    assert live.get_profiles_state() == {"_": "STATE_ASTF_LOADED"}
    live.start(mult=1)
    assert live.get_profiles_state() == {"_": "STATE_TX"}
    assert live.is_traffic_active()
    with pytest.raises(STLError, match="STATE_TX"):
        live.start()
    live.stop()
    assert live.get_profiles_state() == {"_": "STATE_ASTF_LOADED"}
    assert not live.is_traffic_active()
    live.clear_profile()
    assert live.get_profiles_state() == {"_": "STATE_IDLE"}
    with pytest.raises(STLError, match="load_profile"):
        live.start()


def test_a_profile_runs_again_and_counts_anew(live: Any) -> None:
    live.load_profile(few(40))
    for _ in range(3):
        whole(live, run_to_the_end(live), 40)


def test_the_rate_is_changed_while_it_runs(live: Any) -> None:
    live.load_profile(http())
    live.start(mult=0.2)
    until(lambda: live.get_flow_rates()["established"] > 0, "no connection")
    assert live.get_flow_rates()["offered_cps"] == pytest.approx(20)
    live.update(3)
    assert live.get_flow_rates()["offered_cps"] == pytest.approx(300)
    begun = live.get_flow_rates()["begun"]
    until(lambda: live.get_flow_rates()["begun"] > begun + 100, "no more connections")
    live.stop()
    no_errors(live, live.get_traffic_stats())


def test_open_flows_are_left_or_waited_for(live: Any) -> None:
    """With nc a stop does not wait for the answer that takes an hour."""
    asks, answers = ASTFProgram(), ASTFProgram()
    asks.send(ASK)
    asks.recv(1)
    answers.recv(len(ASK))
    answers.delay(3_600_000_000)
    answers.send(b"*")
    slow = ASTFTemplate(
        client_template=ASTFTCPClientTemplate(program=asks, ip_gen=pools(), cps=1000, limit=20),
        server_template=ASTFTCPServerTemplate(program=answers),
    )
    live.load_profile(http(slow))
    live.start(nc=True)
    until(lambda: live.get_traffic_stats()["client"]["m_est_flows"] == 20, "not all are open")
    live.stop()
    assert live.get_profiles_state()["_"] == "STATE_ASTF_LOADED"


def test_counters_are_cleared_for_one_who_asks(live: Any) -> None:
    live.load_profile(few(30))
    run_to_the_end(live)
    live.clear_stats()
    stats = live.get_stats()
    assert "tcps_connects" not in stats["traffic"]["client"]
    assert stats["total"]["opackets"] == 0


def test_ports_count_what_flows_send(live: Any) -> None:
    live.clear_stats()
    live.load_profile(few(50))
    run_to_the_end(live)
    stats = live.get_stats()
    assert stats[0]["opackets"] == stats[1]["ipackets"] > 50 * 5
    assert stats[1]["obytes"] > 50 * ANSWER_BYTES


# Groups, dynamic counters, several profiles


def test_template_groups_add_up(live: Any) -> None:
    names = [f"group {number}" for number in range(12)]
    live.load_profile(
        http(*(template(8000 + n, name, cps=1000, limit=n + 1) for n, name in enumerate(names)))
    )
    traffic = run_to_the_end(live)
    whole(live, traffic, sum(range(1, 13)))
    assert live.get_tg_names() == names
    groups = live.get_traffic_tg_stats(names)
    for number, name in enumerate(names):
        whole(live, groups[name], number + 1)
    assert live.get_dynamic_traffic_stats() == {"client": {}, "server": {}}
    assert live.get_dynamic_traffic_stats(is_sum=True) == {"client": {}, "server": {}}
    assert live.is_dynamic_traffic_stats_error({"client": {}, "server": {}})[0] is False


def test_profiles_side_by_side(live: Any) -> None:
    for port, name in ((81, "one"), (82, "two")):
        live.load_profile(few(port, port), pid_input=name)
    live.start(pid_input=["one", "two"])
    live.wait_on_traffic(timeout=WAIT_S)
    for port, name in ((81, "one"), (82, "two")):
        whole(live, live.get_traffic_stats(pid_input=name), port)
    assert live.get_traffic_stats(is_sum=True)["client"]["tcps_connects"] == 81 + 82
    live.load_profile(few(81, 81), pid_input="two")
    live.clear_profile(pid_input="one")
    assert set(live.get_profiles()) == {"_", "two"}
    live.stop(pid_input="*", is_remove=True)
    assert live.get_profiles_state() == {"_": "STATE_IDLE"}


# What is wrong


def test_nobody_serves_the_port(live: Any) -> None:
    """The server's side is there for another address only: clients are refused, and both sides say so."""
    nowhere = ASTFAssociationRule(port=80, ip_start="1.0.0.1", ip_end="1.0.0.2")
    lonely = template(cps=1000, limit=10, rule=nowhere)
    live.load_profile(http(lonely))
    traffic = run_to_the_end(live)
    failed, errors = live.is_traffic_stats_error(traffic)
    assert failed
    assert "err_no_template" in errors["server"]
    assert "tcps_conndrops" in errors["client"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda fields: fields["program_list"][0]["commands"][0].update(buf_index=99), ["99"]),
        (lambda fields: fields["templates"][0]["client_template"].update(program_index=7), ["7"]),
        (lambda fields: fields.update(c_glob_info={"tcp": {"mss": 9217}}), ["mss", "9217"]),
    ],
)
def test_profiles_that_cannot_work_are_refused(live: Any, change: Any, words: list[str]) -> None:
    fields = http().to_json()
    change(fields)
    with pytest.raises(STLError) as refused:
        live.load_profile(allosaur.ASTFProfileLight(fields))
        live.start()
    for word in words:
        assert word in str(refused.value)
    assert live.get_profiles_state()["_"] in ("STATE_IDLE", "STATE_ASTF_LOADED")
    live.load_profile(few(5))
    whole(live, run_to_the_end(live), 5)


def test_clients_for_the_other_kind_of_server(running: LocalServer) -> None:
    streams = STLClient(server=running.host, sync_port=running.rpc_port, async_port=running.pub_port)
    with pytest.raises(STLError, match="use ASTFClient"):
        streams.connect()
    with LocalServer(options=["--stateless"]) as stateless:
        client = ASTFClient(
            server=stateless.host, sync_port=stateless.rpc_port, async_port=stateless.pub_port
        )
        with pytest.raises(STLError, match="use STLClient"):
            client.connect()


# Beside the traffic


def test_latency_beside(live: Any) -> None:
    live.load_profile(http())
    live.start(latency_pps=200)
    until(
        lambda: live.get_latency_stats().get(0, {}).get("stats", {}).get("m_pkt_ok", 0) > 20,
        "no echo came back",
    )
    live.stop()
    measured = live.get_latency_stats()[0]
    assert measured["hist"]["cnt"] > 0
    assert measured["stats"]["m_seq_error"] == 0
    live.start_latency(mult=100)
    live.update_latency(300)
    live.stop_latency()
    no_errors(live, live.get_traffic_stats())


def test_clients_rest_and_work_again(live: Any) -> None:
    live.load_profile(http())
    live.start()
    until(lambda: live.get_flow_rates()["begun"] > 5, "no connection")
    live.set_client_enable_range("16.0.0.1", "16.0.0.254", False)
    info = live.get_clients_info_range("16.0.0.1", "16.0.0.3")
    assert {one["state"] for one in info.values()} == {"Inactive"}
    until(lambda: live.get_traffic_stats()["client"]["m_active_flows"] == 0, "flows did not end")
    before = live.get_flow_rates()["begun"]
    live.set_client_enable_range("16.0.0.1", "16.0.0.254", True)
    until(lambda: live.get_flow_rates()["begun"] > before + 5, "clients stay at rest")
    live.stop()


def test_what_tcp_knows_of_flows(live: Any) -> None:
    live.load_profile(ASTFProfile.load(ROOT / "profiles" / "stateful" / "elephants.py", flows=3, seconds=2))
    live.start(dump_interval=0.05)
    until(lambda: len(live.get_flow_info()) >= 3, "no records")
    records = live.get_flow_info()
    live.stop()
    for flow, found in records.items():
        assert flow.count(":") == 2
        assert {"state", "rtt", "snd_cwnd", "snd_mss", "snd_rexmitpack", "origin"} <= found[0].keys()
    started = live.get_flow_info(index=0)
    assert started["next_index"] > 0


def test_streams_beside_conversations(live: Any) -> None:
    packet = STLPktBuilder(pkt=Ether() / IP(src="20.0.0.1", dst="50.0.0.1") / ICMP() / bytes(50))
    stream = STLStream(packet=packet, mode=STLTXSingleBurst(total_pkts=500, pps=5000))
    live.load_profile(http())
    live.start()
    live.add_streams(stream, ports=[0])
    live.start_stl(ports=[0])
    live.wait_on_traffic_stl(ports=[0], timeout=WAIT_S)
    assert live.is_traffic_active()
    live.stop()
    no_errors(live, live.get_traffic_stats())
    live.remove_all_streams(ports=[0])


def test_addresses_that_get_no_answer(live: Any) -> None:
    live.set_ignored_macs_ips(mac_list=["02:00:00:00:00:99"], ip_list=["16.0.0.9"])
    assert live.get_ignored_macs_ips() == {"ips": ["16.0.0.9"], "macs": ["02:00:00:00:00:99"]}
    live.set_ignored_macs_ips()
    assert live.get_ignored_macs_ips() == {"ips": [], "macs": []}


def test_a_topology_is_kept(live: Any, running: LocalServer) -> None:
    topology = allosaur.ASTFTopology(
        vifs=[allosaur.TopoVIF("0.1", "02:00:00:00:01:01", "192.0.2.1", "", 7)],
        gws=[allosaur.TopoGW("0.1", "16.0.0.1", "16.0.0.9", "00:00:00:01:00:02")],
    )
    live.topo_load(topology)
    live.topo_resolve()
    with running.client(username="bob") as other:
        assert other.topo_get().to_json() == topology.to_json()  # type: ignore[attr-defined]
    live.topo_clear()


# The examples, TRex's names, and the paper's listings


#: What is under way when a run is cut off comes for flows that are no more.
CUT_OFF = {"err_no_syn", "err_cwf"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(live: Any, path: Path) -> None:
    live.load_profile(path)
    live.start(duration=0.5, nc=True)
    live.wait_on_traffic(timeout=WAIT_S)
    traffic = live.get_traffic_stats()
    ours = traffic["client"]
    assert ours.get("tcps_connects", 0) + ours.get("udps_connects", 0) > 0
    _, errors = live.is_traffic_stats_error(traffic)
    found = {name for names in errors.values() for name in names}
    assert found <= CUT_OFF, {side: traffic[side] for side in SIDES}


@pytest.mark.parametrize("number", ["5", "6"])
def test_profiles_of_the_paper_run_as_they_are(live: Any, listings: Path, number: str) -> None:
    live.load_profile(listings / f"listing{number}.py")
    traffic = run_to_the_end(live, duration=1, mult=20)
    no_errors(live, traffic)
    ours, theirs = (traffic[side] for side in SIDES)
    assert ours["tcps_connects"] == theirs["tcps_accepts"] > 0
    assert ours["tcps_rcvbyte"] == theirs["tcps_sndbyte"] > 0
    assert theirs["tcps_rcvbyte"] == ours["tcps_sndbyte"] > 0


@pytest.mark.parametrize("number", ["5", "6"])
def test_listing_9_runs_as_it_is(binary: Path, listings: Path, number: str) -> None:
    """The script connects to ports 4501 and 4500: a loopback address of its own keeps them free."""
    with LocalServer(
        binary=binary, listen=f"127.45.9.{number}", rpc_port=4501, pub_port=4500, stateful=True
    ) as server:
        words = [server.host, str(listings / f"listing{number}.py"), "10", "1"]
        done = subprocess.run(
            [sys.executable, str(listings / "listing9.py"), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_S,
        )
        assert done.returncode == 0, done.stderr + server.stderr
    assert "'tcps_connects': 1" in done.stdout, done.stdout
    assert "'err" not in done.stdout


def test_trex_s_names_drive_our_server(running: LocalServer, tmp_path: Path) -> None:
    """A script in TRex's words, in a process of its own."""
    script = tmp_path / "script.py"
    script.write_text(
        "import json, sys\n"
        "from trex.astf.api import *\n"
        "from trex.astf.trex_astf_client import ASTFClient as Same\n"
        "assert Same is ASTFClient\n"
        "host, rpc, pub, profile = sys.argv[1:]\n"
        "c = ASTFClient(server=host, sync_port=int(rpc), async_port=int(pub))\n"
        "c.connect()\n"
        "c.reset()\n"
        "c.load_profile(profile)\n"
        "c.clear_stats()\n"
        "c.start(mult=20, duration=0.5)\n"
        "c.wait_on_traffic()\n"
        "stats = c.get_stats()['traffic']\n"
        "print(json.dumps([stats, c.is_traffic_stats_error(stats)]))\n"
        "c.disconnect()\n",
        encoding="utf-8",
    )
    words = [running.host, running.rpc_port, running.pub_port, ROOT / "profiles" / "stateful" / "http.py"]
    package = str(Path(allosaur.__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, str(script), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
        env={**os.environ, "PYTHONPATH": package},
    )
    assert done.returncode == 0, done.stderr
    stats, (failed, _) = json.loads(done.stdout.splitlines()[-1])
    assert stats["client"]["tcps_connects"] == stats["server"]["tcps_accepts"] > 0
    assert not failed
