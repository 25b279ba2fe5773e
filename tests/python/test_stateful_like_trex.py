"""The stateful client asks as TRex's client asked a real server, and gives scripts the same dictionaries."""

from __future__ import annotations

import inspect
import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import ASTFClient, ASTFProfileLight, ASTFTopology, STLRpcError
from allosaur.testing import MockStatefulTransport

#: Every public method of TRex's stateful client that its stateless client has not, or has with other
#: parameters, and that is no console command; what ours takes after them is not listed.
SURFACE = {
    "acquire": "force lease_s ports",  # the last two are our own
    "activate_tunnel": "tunnel_type activate loopback",
    "clear_dynamic_traffic_stats": "pid_input clear_all",
    "clear_profile": "block pid_input",
    "clear_stats": "ports clear_global clear_xstats clear_traffic pid_input",
    "clear_traffic_stats": "pid_input is_sum",
    "get_clients_info": "client_list timeout",
    "get_clients_info_range": "client_start client_end timeout",
    "get_dynamic_traffic_stats": "skip_zero pid_input is_sum",
    "get_flow_info": "profile_id duration index",
    "get_ignored_macs_ips": "to_str",
    "get_latency_stats": "skip_zero",
    "get_mode": "",
    "get_profiles": "profiles_in_ports",
    "get_profiles_state": "",
    "get_stats": "ports sync_now skip_zero pid_input is_sum",
    "get_tg_names": "pid_input",
    "get_traffic_distribution": "start_ip end_ip dual_ip seq_split",
    "get_traffic_stats": "skip_zero pid_input is_sum",
    "get_traffic_tg_stats": "tg_names skip_zero pid_input",
    "inc_epoch": "",
    "is_dynamic_traffic_stats_error": "stats pid_input is_sum",
    "is_traffic_stats_error": "stats",
    "is_tunnel_supported": "tunnel_type",
    "load_profile": "profile tunables pid_input",
    "release": "force",
    "reset": "restart ports",
    "set_client_enable": "client_list is_enable",
    "set_client_enable_range": "client_start client_end is_enable",
    "set_ignored_macs_ips": "mac_list ip_list is_str",
    "set_service_mode": "ports enabled filtered mask",
    "start": "mult duration nc block latency_pps ipv6 pid_input client_mask e_duration t_duration "
    "dump_interval",
    "start_latency": "mult src_ipv4 dst_ipv4 ports_mask dual_ipv4 port_ipv4_offset_s",
    "stop": "block pid_input is_remove",
    "stop_latency": "",
    "sync": "",
    "topo_clear": "",
    "topo_load": "topology tunables",
    "topo_resolve": "ports",
    "topo_save": "filename",
    "topo_show": "ports",
    "tunnels_topo_clear": "",
    "tunnels_topo_load": "topology tunables",
    "tunnels_topo_show": "",
    "update": "mult pid_input",
    "update_latency": "mult",
    "update_tunnel_client_record": "client_list tunnel_type",
    "wait_on_traffic": "timeout profile_id",
    "wait_on_traffic_stl": "ports timeout rx_delay_ms",
}


@pytest.mark.parametrize("name", SURFACE)
def test_a_method_takes_what_trex_scripts_give(name: str) -> None:
    parameters = list(inspect.signature(getattr(ASTFClient, name)).parameters.values())[1:]
    positional = [one.name for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert positional == SURFACE[name].split()


#: What only asks: a client may ask in another order, or more.
QUESTIONS = ("get_", "sync", "ping", "publish_now", "api_sync", "topo_get")


class Recording:
    """A conversation of TRex's client: what it asked in each step, what came, and what it returned."""

    def __init__(self, lines: list[Any]) -> None:
        self.asked: dict[str, list[tuple[str, dict[str, Any], Any]]] = {}
        self.results: dict[str, Any] = {}
        step = ""
        waiting: dict[str, tuple[str, dict[str, Any], str]] = {}
        for entry in lines:
            if "step" in entry and "msg" not in entry and "zmq_connect" not in entry:
                step = entry["step"]
            if "client_result" in entry:
                self.results[step] = entry["client_result"]
            messages = entry.get("msg")
            for one in messages if isinstance(messages, list) else [messages]:
                if isinstance(one, dict) and "method" in one:
                    waiting[one["id"]] = (one["method"], one["params"], entry.get("step", step))
                elif isinstance(one, dict) and one.get("id") in waiting:
                    method, params, where = waiting.pop(one["id"])
                    self.asked.setdefault(where, []).append((method, params, one))

    def changes(self, step: str) -> list[tuple[str, dict[str, Any]]]:
        """The requests of a step that changed something."""
        made = changes([(method, params) for method, params, _ in self.asked[step]])
        # What came after the last step has no name of its own.
        return [one for one in made if one[0] != "release" or step == "disconnect"]

    def profile(self, step: str) -> ASTFProfileLight:
        """The profile that was loaded in a step."""
        pieces = [
            params["fragment"] for method, params, _ in self.asked[step] if method == "profile_fragment"
        ]
        return ASTFProfileLight(json.loads("".join(pieces)))


def changes(requests: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Requests that change something, without what is of one run: keys, sessions, users."""
    return [
        (method, {name: value for name, value in params.items() if name not in OF_ONE_RUN})
        for method, params in requests
        if not method.startswith(QUESTIONS)
    ]


OF_ONE_RUN = ("handler", "api_h", "session_id", "user")
#: What the real server answered is what the mock answers.
ANSWERED = (
    *(
        "get_counter_desc",
        "get_counter_values",
        "get_total_counter_values",
        "get_tg_names",
        "get_tg_id_stats",
    ),
    *("get_latency_stats", "get_traffic_dist", "get_flow_info", "get_profile_list", "get_utilization"),
    *("get_port_xstats_values", "get_clients_info_pull", "is_tunnel_supported", "get_global_stats"),
    *("get_port_stats", "activate_tunnel_mode", "capture"),
)


class Replay:
    """Our client against a mock that answers as the real server did, step by step."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.mock = MockStatefulTransport()
        everything = [entry for entries in recording.asked.values() for entry in entries]
        for method, _, reply in everything:
            if method in ("get_system_info", "get_port_xstats_names", "get_counter_desc"):
                self.mock.answer(method, reply["result"])
        self.client = ASTFClient(username="root", transport=self.mock)
        self.client.connect()
        self.client.reset()

    def step(self, name: str, call: Callable[[ASTFClient], Any], same: bool = True) -> Any:
        """Make the call of a step; its requests must be those that were recorded."""
        self._answer_as(name)
        before = len(self.mock.calls)
        result = call(self.client)
        if same:
            assert changes(self.mock.calls[before:]) == self.recording.changes(name)
        return result

    def _answer_as(self, name: str) -> None:
        for method in ANSWERED:
            replies = [reply for asked, _, reply in self.recording.asked.get(name, []) if asked == method]
            if replies:
                self.mock.answer(method, Answers(replies))


class Answers:
    """The replies to one method, in order; the last one again and again."""

    def __init__(self, replies: list[dict[str, Any]]) -> None:
        self._replies = replies

    def __call__(self, _params: dict[str, Any]) -> Any:
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if "error" in reply:
            raise STLRpcError("", reply["error"]["code"], reply["error"]["specific_err"])
        return reply["result"]


@pytest.fixture
def replay(transcript: Callable[[str], list[Any]]) -> Iterator[Callable[[str], Replay]]:
    clients = []

    def start(name: str) -> Replay:
        made = Replay(Recording(transcript(f"astf_{name}")))
        clients.append(made.client)
        return made

    yield start
    for client in clients:
        client.disconnect()


def shape(value: Any) -> Any:
    """The keys of dictionaries, at every depth; of everything else that it is a number, a text, a list."""
    if isinstance(value, dict):
        return {str(key): shape(one) for key, one in value.items()}
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def same(value: Any) -> Any:
    """A value as JSON has it: keys are text."""
    return json.loads(json.dumps(value))


def test_a_basic_run(replay: Callable[[str], Replay]) -> None:
    run = replay("a01")
    assert changes(run.mock.calls) == run.recording.changes("reset")
    loaded = run.recording.profile("load_profile")
    run.step("load_profile", lambda client: client.load_profile(loaded))
    run.step("clear_stats", lambda client: client.clear_stats())
    run.step("start", lambda client: client.start(mult=10, duration=5))
    stats = run.step("get_stats", lambda client: client.get_stats())
    expected = run.recording.results["get_stats"]
    assert same(stats["traffic"]) == expected["traffic"]
    assert shape(stats) == shape(expected)
    run.mock.end_profile()
    run.client.wait_on_traffic(timeout=5)
    run.step("start2", lambda client: client.start(nc=True))
    run.step("stop", lambda client: client.stop())
    run.step("disconnect", lambda client: client.disconnect())


def test_counters_of_groups(replay: Callable[[str], Replay]) -> None:
    run = replay("a03")
    loaded = run.recording.profile("load")
    run.step("load", lambda client: client.load_profile(loaded))
    run.step("start", lambda client: client.start(mult=5))
    run.step("update", lambda client: client.update(20))
    calls: dict[str, Callable[[ASTFClient], Any]] = {
        "get_tg_names": lambda client: client.get_tg_names(),
        "get_traffic_tg_stats": lambda client: client.get_traffic_tg_stats(["1x", "2x"]),
        "get_traffic_stats noskip": lambda client: client.get_traffic_stats(skip_zero=False),
        "clear_traffic_stats": lambda client: client.clear_traffic_stats(),
        "get_traffic_distribution": lambda client: client.get_traffic_distribution(
            "16.0.0.0", "16.0.0.255", "1.0.0.0", False
        ),
        "get_flow_info": lambda client: client.get_flow_info(),
        "get_profiles": lambda client: client.get_profiles(),
        "get_util_stats": lambda client: client.get_util_stats(),
        "get_xstats": lambda client: client.get_xstats(0),
        "get_profiles_state": lambda client: client.get_profiles_state(),
    }
    for name, call in calls.items():
        assert same(run.step(name, call, same=name != "get_profiles_state")) == run.recording.results[name], (
            name
        )
    run.step("stop", lambda client: client.stop(), same=False)


def counter_rows(recording: Recording) -> Any:
    """The description of counters that the real server gave."""
    return next(
        reply["result"]
        for entries in recording.asked.values()
        for method, _, reply in entries
        if method == "get_counter_desc" and "result" in reply
    )


def test_all_counters_of_the_real_server_are_known(transcript: Callable[[str], list[Any]]) -> None:
    rows = counter_rows(Recording(transcript("astf_a03")))["data"]
    assert len(rows) == 140
    mock = MockStatefulTransport()
    mock.answer("get_counter_desc", {"data": rows})
    with ASTFClient(transport=mock) as client:
        whole = client.get_traffic_stats(skip_zero=False)
        assert set(whole["client"]) == {row["name"] for row in rows}
        bad = {row["name"] for row in rows if row["info"] == "error"}
        stats = {"client": dict.fromkeys(whole["client"], 1), "server": {}}
        assert client.is_traffic_stats_error(stats)[1]["client"].keys() == bad


def test_latency(replay: Callable[[str], Replay]) -> None:
    run = replay("a04")
    steps = run.recording.asked
    started = next(params for method, params, _ in steps["start_latency"] if method == "start_latency")
    run.step("start_latency", lambda client: client.start_latency(mult=started["mult"]))
    stats = run.step("get_latency_stats", lambda client: client.get_latency_stats())
    assert same(stats) == run.recording.results["get_latency_stats"]
    (updated,) = run.recording.changes("update_latency")
    run.step("update_latency", lambda client: client.update_latency(updated[1]["mult"]))
    run.step("stop_latency", lambda client: client.stop_latency())


def test_many_profiles(replay: Callable[[str], Replay]) -> None:
    run = replay("a05")
    for name in ("p1", "p2"):
        loaded = run.recording.profile(f"load {name}")
        run.step(f"load {name}", lambda client, it=loaded, to=name: client.load_profile(it, pid_input=to))
    for name in ("p1", "p2"):
        run.step(f"start {name}", lambda client, to=name: client.start(mult=5, pid_input=to))
    run.step("update p1", lambda client: client.update(10, "p1"))
    stats = run.step("get_stats p1", lambda client: client.get_stats(pid_input="p1"))
    assert shape(stats).keys() == run.recording.results["get_stats p1"].keys()
    run.step("get_stats sum", lambda client: client.get_stats(is_sum=True))
    run.step("stop p1", lambda client: client.stop(pid_input="p1"))
    run.step("stop *", lambda client: client.stop(pid_input="*", is_remove=True))
    run.step("clear", lambda client: client.clear_profile())


def test_topology(replay: Callable[[str], Replay]) -> None:
    run = replay("a06")
    ((_, sent),) = run.recording.changes("topo_resolve")
    topology = ASTFTopology.from_json(json.loads(sent["fragment"]))
    run.step("topo_load", lambda client: client.topo_load(topology), same=False)
    run.step("topo_resolve", lambda client: client.topo_resolve())
    run.step("topo_clear", lambda client: client.topo_clear())


def test_clients_and_tunnels(replay: Callable[[str], Replay]) -> None:
    run = replay("a07")
    for asked in ("get_clients_info_start", "get_clients_info_pull"):
        assert any(asked == method for method, _, _ in run.recording.asked["get_clients_info"])
    first = 0x10000001
    info = run.step("get_clients_info", lambda client: client.get_clients_info([first, first + 1]))
    assert str(info) == run.recording.results["get_clients_info"].strip()
    info = run.step("get_clients_info_range", lambda client: client.get_clients_info_range(first, first + 4))
    assert len(info) == 5
    run.step("set_client_enable", lambda client: client.set_client_enable([first], False))
    run.step("set_client_enable_range", lambda client: client.set_client_enable_range(first, first + 2, True))
    assert run.step("is_tunnel_supported", lambda client: client.is_tunnel_supported()) == {
        "is_tunnel_supported": True
    }
    with pytest.raises(STLRpcError, match="state should be IDLE"):
        run.step("activate_tunnel", lambda client: client.activate_tunnel())
    run.step("set_ignored", lambda client: client.set_ignored_macs_ips(["02:00:00:00:00:99"], ["16.0.0.9"]))
    ignored = run.step("get_ignored", lambda client: client.get_ignored_macs_ips())
    assert ignored == run.recording.results["get_ignored"]
    run.step("clear_ignored", lambda client: client.set_ignored_macs_ips())


def test_service_mode(replay: Callable[[str], Replay]) -> None:
    run = replay("a09")
    run.step("service", lambda client: client.set_service_mode())
    started = run.step("start_capture", lambda client: client.start_capture(0, 1, limit=50), same=False)
    assert started["id"] == run.recording.results["start_capture"]["id"]
    run.step("service filtered", lambda client: client.set_service_mode(filtered=True, mask=1))
    run.step("service off", lambda client: client.set_service_mode(enabled=False))


def test_events_have_the_same_words_and_order(replay: Callable[[str], Replay]) -> None:
    run = replay("a10")
    theirs = [
        (event["type"], {name: value for name, value in event["data"].items() if name != "epoch"})
        for entries in run.recording.asked.values()
        for method, _, reply in entries
        if method == "get_async_events"
        for event in reply["result"]["data"]
    ]
    assert {kind for kind, _ in theirs} <= {50, 60, 61}
    mock = MockStatefulTransport()
    client = ASTFClient(transport=mock)
    client.connect()
    for kind, data in theirs:
        mock.publish(kind, **data, epoch=1)
    client._connection.session().drain_events()
    words = [event.msg for event in client.get_events()][-len(theirs) :]
    assert "Moved to state: Transmitting" in words
    assert "Removed profile : _" in words
    assert client.sync() == {"_": 0}


def test_listing_9_of_the_paper_runs_as_it_is(
    listings: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mock = MockStatefulTransport(auto_finish=True)
    mock.counters["client"] = {"tcps_connects": 7}
    monkeypatch.setattr("allosaur.client._connection.ZmqTransport", lambda *_arguments: mock)
    monkeypatch.setattr("sys.argv", ["listing9.py", "mock", str(listings / "listing5.py"), "10", "2"])
    runpy.run_path(str(listings / "listing9.py"))
    assert "'tcps_connects'" in capsys.readouterr().out
    (started,) = mock.requests("start")
    assert (started["mult"], started["duration"], started["nc"]) == (10.0, 2.0, True)
    assert "release" in mock.methods()
