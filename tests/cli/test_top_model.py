"""The dashboard without a terminal and a server: what it knows, its keys, and its lines for any size."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from allosaur.cli._modes import STATEFUL, STATELESS
from allosaur.cli.top import _keys, _numbers, _screen
from allosaur.cli.top._history import History
from allosaur.cli.top._snapshot import (
    Core,
    Flows,
    Group,
    Latency,
    Note,
    Pool,
    Port,
    Run,
    Server,
    Snapshot,
)
from allosaur.cli.top._state import Action, Change, Page, State, View
from allosaur.cli.top._table import Cell, Column, Look, cut, fitting, spread, table, text_of
from allosaur.metrics import Metrics

SIZES = ((80, 24), (120, 40), (200, 50))
TIMES = {
    "min": 1.0,
    "average": 12.34,
    "max": 900,
    "last_max": 40,
    "jitter": 2,
    "p50": 11.5,
    "p90": 20,
    "p99": 33.3,
}


def port(number: int, **more: object) -> Port:
    counters = {"tx_pps": 1.25e6, "tx_bps": 640e6, "rx_pps": 1.24e6, "rx_bps": 635e6, "tx_util": 8.4}
    counters |= {"opackets": 123_456, "ipackets": 123_400, "obytes": 7_901_184, "ibytes": 7_897_600}
    counters |= {"oerrors": 0, "ierrors": 3, "missed_packets": 0, "queue_full": 0, "rx_lost_packets": 0}
    values: dict[str, object] = {
        "number": number,
        "kind": "memory",
        "mode": STATELESS,
        "owner": "ann",
        "is_ours": True,
        "state": "TX",
        "is_up": True,
        "speed_bps": 1e10,
        "counters": counters,
    }
    return Port(**{**values, **more})  # type: ignore[arg-type]


def emulated(at_s: float = 100.0, clients: int = 60, requests: int = 120, dropped: int = 0) -> Metrics:
    """What a registry says of emulated clients: `requests` and `dropped` are counters of plugins."""
    rows = {
        "clients": ("gauge", clients, False),
        "ready_clients": ("gauge", clients - 2, False),
        "arp_requests": ("counter", requests, False),
        "arp_replies": ("counter", 0, False),
        "igmp_groups": ("gauge", 4, False),
        "dhcp_dropped": ("counter", dropped, True),
    }
    named = {f"allosaur_emulation_{name}": row for name, row in rows.items()}
    return Metrics.from_reply(
        {
            "time_ns": int(at_s * 1e9),
            "families": {
                name: {"kind": kind, "unit": None, "labels": [], "help": f"what {name} is", "is_error": wrong}
                for name, (kind, _, wrong) in named.items()
            },
            "metrics": {name: [[[], value]] for name, (_, value, _) in named.items()},
        }
    )


def snapshot(at_s: float = 100.0, **more: object) -> Snapshot:
    values: dict[str, object] = {
        "at_s": at_s,
        "clock_s": 1_700_000_000.0 + at_s,
        "server": Server("localhost:4501", "v0.1.0", (STATELESS, STATEFUL), 3723.0, 2),
        "totals": {
            "tx_pps": 2.5e6,
            "rx_pps": 2.4e6,
            "tx_bps": 1.28e9,
            "rx_bps": 1.2e9,
            "cpu_util": 34.5,
            "queue_full": 0,
        },
        "ports": (port(0), port(1, owner="bob", is_ours=False, state="IDLE", is_up=False)),
        "groups": (Group(7, 1000, 990, 64_000, 63_360, 100.0, 99.0, 51_200.0, 50_688.0, 0),),
        "latency": (
            Latency(
                "pg 12",
                1000,
                998,
                TIMES,
                {10: 900, 20: 98},
                {"dropped": 2, "seq_too_high": 2, "seq_too_low": 0},
            ),
        ),
        "flows": Flows(
            "all profiles",
            {"m_active_flows": 50, "tcps_connects": 1000, "tcps_drops": 4},
            {"m_active_flows": 50, "tcps_accepts": 1000},
            {"tcps_drops": "connections dropped"},
            {"completed flows": (980, 990), "reset by the peer": (3, 0)},
            (("web", None), ("web", "down")),
        ),
        "cores": (Core((0, 1), (34.0, 30.0, 10.0)),),
        "pools": (Pool("cpu-socket-0", "64b", 1000, 250),),
        "runs": (Run(0, "_", 2.0, 4.0, None), Run(None, "web", 100.0, 9.0, 60.0)),
        "notes": (Note(1_700_000_000.0, "port 1 was taken", True),),
        "metrics": emulated(at_s),
    }
    return Snapshot(**{**values, **more})  # type: ignore[arg-type]


def state(*snapshots: Snapshot, **more: object) -> State:
    made = State(**more)  # type: ignore[arg-type]
    for one in snapshots or (snapshot(),):
        made.take(one)
    return made


def screen(of: State, width: int = 80, height: int = 24) -> str:
    return "\n".join(text_of(line) for line in _screen.lines(of, width, height))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("view", View)
def test_every_view_fills_every_screen_exactly(view: View, size: tuple[int, int]) -> None:
    width, height = size
    many = snapshot(ports=tuple(port(number) for number in range(40)))
    for shown in (
        snapshot(),
        many,
        snapshot(groups=(), latency=(), flows=None, cores=(), pools=(), notes=()),
    ):
        for page in Page if view is View.UTILIZATION else [Page.CORES]:
            for is_histogram in (False, True):
                made = state(shown, page=page, view=view, is_histogram=is_histogram)
                lines = _screen.lines(made, width, height)
                assert len(lines) == height
                assert max(len(text_of(line)) for line in lines) <= width
                assert "q quit" in text_of(lines[-1])


def test_the_smallest_screen_says_all_that_matters_of_ports() -> None:
    text = screen(state(snapshot()))
    header = next(line for line in text.splitlines() if "port" in line and "owner" in line)
    assert header.split() == [
        *("port", "link", "state", "owner", "tx", "pps", "tx", "bps", "util", "%"),
        *("rx", "pps", "rx", "bps", "missed", "errors"),
    ]
    first, *_ = (line for line in text.splitlines() if line.startswith("   0 "))
    assert first.split() == [
        "0",
        "up",
        "sends",
        "ours",
        "1.25",
        "M",
        "640",
        "M",
        "8.4",
        "1.24",
        "M",
        "635",
        "M",
        "0",
        "3",
    ]
    assert "localhost:4501  v0.1.0  both modes  2 cores  up 1:02:03" in text
    assert "! port 1 was taken" in text


def test_a_wide_screen_shows_more_columns_and_what_is_measured_besides() -> None:
    wide = screen(state(snapshot()), 200, 50)
    for words in (
        "tx pkts",
        "queue full",
        "mode",
        "Streams",
        "Latency (usec)",
        "p99.9",
        "stateless",
        "! tcps_drops",
    ):
        assert words in wide
    assert "queue full" not in screen(state(snapshot())).split("Ports")[1]


def test_a_screen_that_is_too_small_says_so_and_nothing_else() -> None:
    assert screen(state(), 79, 24).strip() == "79x24: enlarge to 80x24; q quits"
    assert len(_screen.lines(state(), 20, 3)) == 3
    assert _screen.lines(state(), 0, 0) == []


def test_columns_are_kept_by_rank() -> None:
    columns = [
        Column[int]("a", 4, str),
        Column[int]("b", 4, str, rank=2),
        Column[int]("c", 4, str, rank=1),
    ]
    assert [one.title for one in fitting(columns, 14)] == ["a", "b", "c"]
    assert [one.title for one in fitting(columns, 13)] == ["a", "c"]
    assert [one.title for one in fitting(columns, 4)] == ["a"]


def test_cells_keep_their_width_whatever_they_show() -> None:
    columns = [Column[str]("name", 6, lambda text: text, is_text=True), Column[str]("n", 3, lambda text: "7")]
    header, short, long = table(columns, ["ab", "abcdefgh"], 10)
    assert [text_of(line) for line in (header, short, long)] == ["name     n", "ab       7", "abcde…   7"]


FLOWS_OF_ALL = snapshot().flows
assert FLOWS_OF_ALL is not None
FULL = {
    "tx_pps": 1.488e8,
    "tx_bps": 9.99e10,
    "rx_pps": 9.995e5,
    "rx_bps": 1.001e12,
    "tx_util": 100.0,
    "opackets": 10**13 + 1,
    "ipackets": 10**13,
    "obytes": 10**16,
    "ibytes": 10**16 + 1,
    "ierrors": 596_123,
    "oerrors": 7,
    "missed_packets": 12_345_678,
    "queue_full": 596_123,
    "rx_lost_packets": 99_999,
    "cpu_util": 100.0,
}
NUMBER = r"\d[\d.,]*(?: [kMGT]\b)?"


@pytest.mark.parametrize("view", [view for view in View if view is not View.KEYS])
@pytest.mark.parametrize("width", [80, 81, 89, 100, 133])
def test_a_number_is_shown_whole_or_not_at_all(view: View, width: int) -> None:
    full = snapshot(
        ports=tuple(replace(port(number), counters=FULL) for number in range(3)),
        groups=(Group(4_294_967_295, 10**15, 10**15 - 7, 10**17, 10**17, 1.48e8, 1e8, 9e10, 8e10, 10**9),),
        latency=(replace(snapshot().latency[0], name="pg 4294967295", sent=10**12, received=10**9 + 1),),
        flows=replace(FLOWS_OF_ALL, client={"m_active_flows": 10**16, "tcps_drops": 123_456_789_012}),
        totals={**snapshot().totals, **FULL},
    )
    for shown in (full, snapshot()):
        made = state(shown, view=view)
        known = set(re.findall(NUMBER, screen(made, 500, 60)))
        found = set(re.findall(NUMBER, screen(made, width, 24)))
        # How many lines are shown is another number on another screen.
        assert {one for one in found if len(one) > 2} <= known


def test_the_queue_that_was_full_is_told_at_80_columns() -> None:
    totals = {**snapshot().totals, "queue_full": 596_123, "missed_packets": 99_999}
    text = screen(state(snapshot(totals=totals)))
    assert re.search(r"queue full 596 k$", text, re.MULTILINE), text
    assert re.search(r"missed 99999$", text, re.MULTILINE), text


def test_a_number_that_has_no_room_in_its_column_is_not_shown() -> None:
    _, row = table([Column[int]("n", 4, str), Column[int]("m", 5, str)], [123456], 20)
    assert text_of(row).split() == ["…", "…"]
    line = (Cell("queue full "), Cell("596 k"))
    assert [text_of(cut(line, width)) for width in (16, 15, 14, 5)] == [
        "queue full 596 k",
        "queue full …",
        "queue full …",
        "queu…",
    ]


def test_lines_are_cut_and_spread() -> None:
    line = (Cell("abc"), Cell("def", Look.BAD))
    assert cut(line, 4) == (Cell("abc"), Cell("…", Look.DIM))
    assert cut(line, 6) == line
    assert text_of(spread(line, (Cell("right"),), 20)) == "abcdef         right"
    assert text_of(spread(line, (Cell("right"),), 9)) == "ab… right"


def test_counters_of_flows_get_rates_that_survive_a_clear_and_a_restart() -> None:
    def flows(connects: int, of: str = "all") -> Flows:
        return Flows(of, {"tcps_connects": connects}, {}, {})

    history = History()
    history.add(snapshot(10.0, flows=flows(100)))
    assert history.growth("client", "tcps_connects") is None
    history.add(snapshot(12.0, flows=flows(300)))
    assert history.growth("client", "tcps_connects") == 100
    history.add(snapshot(13.0, flows=flows(5)))
    assert history.growth("client", "tcps_connects") is None, "it was cleared"
    history.add(snapshot(14.0, flows=flows(9, "profile web")))
    assert history.growth("client", "tcps_connects") is None, "others were read before"
    history.add(snapshot(15.0, flows=flows(10, "profile web")))
    assert history.growth("client", "tcps_connects") == 1
    history.interrupt()
    history.add(snapshot(16.0, flows=flows(11, "profile web")))
    assert history.growth("client", "tcps_connects") is None, "the server was away"


def test_series_of_what_came_later_begin_with_zeros() -> None:
    history = History()
    history.add(snapshot(1.0, groups=()))
    history.add(snapshot(2.0))
    history.add(snapshot(3.0, groups=()))
    assert history.series("g7", "tx_pps") == [0.0, 100.0, 0.0]
    assert history.series(0, "tx_pps") == [1.25e6] * 3


def test_views_are_chosen_by_the_keys_of_trex() -> None:
    made = state()
    for key, view in (
        ("s", View.STREAMS),
        ("l", View.LATENCY),
        ("t", View.FLOWS),
        ("u", View.UTILIZATION),
        ("g", View.DASHBOARD),
    ):
        assert _keys.pressed(made, key) is None
        assert made.view is view
    only_streams = state(snapshot(server=Server("s", "v3.04", (STATELESS,), None, 1)))
    _keys.pressed(only_streams, "t")
    assert only_streams.view is View.DASHBOARD, "this server has no flows"
    assert "t flows" not in screen(only_streams)


def test_ports_are_shown_and_hidden() -> None:
    made = state()
    assert made.ports == [0], "those that are ours, as in TRex's dashboard"
    for key, shown in (("a", [0, 1]), ("0", [1]), ("0", [0, 1]), ("n", []), ("1", [1]), ("o", [0])):
        assert _keys.pressed(made, key) is None
        assert made.ports == shown
    assert _keys.pressed(made, "7") == "there is no port 7"
    assert state(snapshot(), ports=[1, 9]).ports == [1]
    assert state(snapshot(ports=(port(0, is_ours=False), port(1, is_ours=False)))).ports == [0, 1]


def test_keys_change_only_traffic_that_is_ours() -> None:
    made = state()
    _keys.pressed(made, "a")
    assert _keys.pressed(made, "p") == Action(Change.PAUSE, (0,))
    assert _keys.pressed(made, "+") == Action(Change.FASTER, (0,))
    assert _keys.pressed(made, "-") == Action(Change.SLOWER, (0,))
    assert _keys.pressed(made, "A") == Action(Change.ACQUIRE, (1,))
    assert _keys.pressed(made, "R") == Action(Change.RELEASE, (0,))
    assert _keys.pressed(made, "c") == Action(Change.CLEAR, (0, 1))
    assert "state for that" in str(_keys.pressed(made, "r")), "nothing is paused"
    paused = state(snapshot(ports=(port(0, state="PAUSE"),)))
    assert _keys.pressed(paused, "r") == Action(Change.RESUME, (0,))
    _keys.pressed(made, "n")
    assert "no ports are shown" in str(_keys.pressed(made, "p"))
    _keys.pressed(made, "1")
    assert "A takes them" in str(_keys.pressed(made, "p"))


def test_a_readonly_dashboard_changes_nothing() -> None:
    made = state(readonly=True)
    _keys.pressed(made, "a")
    for key in ("p", "r", "+", "-"):
        assert "read-only" in str(_keys.pressed(made, key))
    for key in ("A", "R"):
        assert _keys.pressed(made, key) is None
    legend = screen(made).splitlines()[-1]
    assert "pause" not in legend and "acquire" not in legend and "clear" in legend
    assert "read-only" in screen(made).splitlines()[0]


def test_rows_scroll_and_stop_at_their_ends() -> None:
    ports = tuple(port(number) for number in range(60))
    made = state(snapshot(ports=ports, groups=(), latency=(), flows=None, metrics=None))
    assert "1 to 15 of 60" in screen(made)
    _keys.pressed(made, "down")
    assert "2 to 16 of 60" in screen(made)
    for _ in range(20):
        _keys.pressed(made, "pagedown")
        screen(made)
    assert "46 to 60 of 60" in screen(made)
    for _ in range(80):
        _keys.pressed(made, "up")
    assert "1 to 15 of 60" in screen(made)


def test_flows_are_chosen_and_their_errors_are_marked() -> None:
    made = state()
    _keys.pressed(made, "t")
    text = screen(made, 120, 40)
    assert "Flows: all profiles  (1 of 3; left, right: others)" in text
    assert "profile web: multiplier 100, for 0:00:09 of 60 s" in text
    (wrong,) = (line for line in text.splitlines() if "tcps_drops" in line)
    assert wrong.split()[:3] == ["!", "tcps_drops", "4"]
    assert "1 error counter (t)" in text
    assert made.wanted.flows_of is None
    _keys.pressed(made, "right")
    _keys.pressed(made, "right")
    _keys.pressed(made, "right")
    assert made.wanted.flows_of == ("web", "down")
    _keys.pressed(made, "m")
    assert made.wanted.dynamic
    _keys.pressed(made, "d")
    assert made.wanted.flows_of is None and not made.wanted.dynamic


def test_a_view_of_flows_says_how_they_ended_and_how_fast() -> None:
    def flows(completed: int) -> Flows:
        return Flows("all", {}, {}, {}, {"completed flows": (completed, 5)})

    made = state(snapshot(10.0, flows=flows(100)), snapshot(12.0, flows=flows(150)), view=View.FLOWS)
    lines = screen(made).splitlines()
    (row,) = (line for line in lines if "completed flows" in line)
    assert row.split() == ["completed", "flows", "150", "25.0", "5", "0"]
    assert "How flows ended" in lines and "no errors" in screen(made)
    ended = {
        "completed flows": (90, 95),
        "reset by the peer": (3, 0),
        "timed out": (2, 1),
        "got no data": (4, 0),
    }
    made = state(snapshot(flows=Flows("all", {}, {}, {"tcps_drops": "drops"}, ended, (("web", None),))))
    for view in (View.DASHBOARD, View.FLOWS):
        made.show(view)
        lines = [line.split() for line in screen(made, 120, 40).splitlines()]
        assert ["!", "reset", "by", "the", "peer", "3", "0"] in lines
        assert ["!", "timed", "out", "2", "1"] in lines
        assert ["got", "no", "data", "4", "0"] in lines, "which ended in some other way, too"
    assert "5 failed flows, 1 error counter (t)" in screen(made)
    assert "How flows ended" not in screen(state(snapshot(flows=Flows("all", {}, {}, {})), view=View.FLOWS))


def test_emulated_clients_have_a_view_with_errors_first() -> None:
    made = state(
        snapshot(10.0, metrics=emulated(10.0)),
        snapshot(12.0, metrics=emulated(12.0, requests=150, dropped=3)),
    )
    _keys.pressed(made, "E")
    lines = screen(made, 120).splitlines()
    place = next(number for number, line in enumerate(lines) if "meaning" in line)
    assert lines[place - 1] == "60 clients, 58 ready"
    wrong, requests, groups = lines[place + 1 : place + 4]
    assert wrong.split()[:4] == ["!", "dhcp_dropped", "3", "1.50"]
    assert requests.split()[:3] == ["arp_requests", "150", "15.0"]
    assert groups.split()[:3] == ["igmp_groups", "4", "what"], "a gauge has no rate"
    assert "what allosaur_emulation_arp_requests is" in requests
    assert "arp_replies" not in screen(made), "it is zero"
    assert "emulated  60 clients, 58 ready   1 error counter (E)" in lines


@pytest.mark.parametrize("metrics", [None, emulated()])
def test_the_names_of_all_views_fit_on_the_smallest_screen(metrics: Metrics | None) -> None:
    names = screen(state(snapshot(metrics=metrics))).splitlines()[4 if metrics is None else 5]
    assert names.split()[0] == "d" and names.split()[-2:] == ["?", "keys"]
    assert ("E emu" in names) == (metrics is not None)


@pytest.mark.parametrize("metrics", [None, emulated(clients=0)])
def test_who_has_no_emulated_clients_sees_nothing_of_them(metrics: Metrics | None) -> None:
    made = state(snapshot(metrics=metrics))
    assert "emulated" not in screen(made, 200, 50)
    _keys.pressed(made, "E")
    assert made.view is View.DASHBOARD
    assert "Emulated clients" not in _screen.plain(made, 200)
    made.view = View.EMULATION  # they went while they were shown
    assert "No clients are emulated" in screen(made)


def test_counters_of_the_registry_have_no_rate_after_a_restart() -> None:
    history = History()
    name = "allosaur_emulation_arp_requests"
    for at_s, requests, rate in (
        (10.0, 100, None),
        (12.0, 140, 20.0),
        (13.0, 5, None),
        (1.0, 9, None),
        (2.0, 10, 1.0),
    ):
        history.add(snapshot(at_s, metrics=emulated(at_s, requests=requests)))
        assert history.rate(name, ()) == rate


def test_latency_has_percentiles_and_a_histogram() -> None:
    made = state()
    _keys.pressed(made, "l")
    row = next(line for line in screen(made).splitlines() if line.startswith("pg 12"))
    assert row.split()[:6] == ["pg", "12", "998", "12.3", "11.5", "20"]
    assert "p50" in screen(made) and "p99" in screen(made)
    _keys.pressed(made, "h")
    text = screen(made)
    assert "p50 11.5, p90 20, p99 33.3" in text and "dropped 2" in text
    low, high = (line for line in text.splitlines() if line.lstrip().startswith(("10 ", "20 ")))
    assert low.split()[:4] == ["10", "900", "90.18", "90.18"]
    assert high.split()[:4] == ["20", "98", "9.82", "100.00"]
    assert low.count("█") > 5 * high.count("█") > 0


def test_a_server_that_is_away_leaves_what_was_read_and_says_why() -> None:
    made = state()
    made.lose("no answer from localhost:4501 within 3 s")
    text = screen(made)
    assert "server lost, last read" in text
    assert "trying again: no answer from localhost:4501 within 3 s" in text
    assert "1.25 M" in text
    made.take(snapshot(200.0))
    assert "lost" not in screen(made)


def test_nothing_is_assumed_of_a_server_that_tells_less() -> None:
    bare = Latency("pg 1", 5, 5, dict.fromkeys(("average", "max"), 3.0), {}, {})
    made = state(
        snapshot(
            server=Server("trex:4501", "v3.04", (STATELESS,), None, 1),
            ports=(port(0, counters={"tx_pps": 5.0}),),
            latency=(bare,),
            totals={},
        )
    )
    text = screen(made, 200, 50)
    assert "up " not in text.splitlines()[0] and "pg 1" in text
    _keys.pressed(made, "l")
    _keys.pressed(made, "h")
    assert "no errors" in screen(made)


def test_numbers_are_short_and_exact_where_it_matters() -> None:
    assert [_numbers.loss(*one) for one in ((0, 5), (1, 100), (1, 100_000), (1, 10**9), (-1, 100))] == [
        *("0.00", "1.00", "0.0010", "<0.0001", "-1.00"),
    ]
    assert [_numbers.usec(one) for one in (None, 3, 3.25, 12_345.6, 1_223_600)] == [
        "-",
        "3",
        "3.2",
        "12346",
        "1.22 M",
    ]
    assert [_numbers.elapsed(one) for one in (5, 3723, 90_061)] == ["0:00:05", "1:02:03", "1 d 1:01:01"]
    assert [_numbers.count(one) for one in (9_999_999_999, 10**10)] == ["9999999999", "10.0 G"]
    assert _numbers.problems(0).look is Look.DIM and _numbers.problems(1).look is Look.BAD


def test_the_text_of_all_of_it_needs_no_terminal() -> None:
    text = _screen.plain(state(), 120)
    for words in ("Ports", "Streams", "Latency (usec)", "Flows: all profiles", "Data cores", "tcps_drops"):
        assert words in text
    assert "\x1b" not in text and "left, right" not in text
    assert text.count("m_active_flows") == 1


def test_what_came_of_a_key_is_told_among_the_events() -> None:
    made = state()
    made.tell("ports 0: paused", 1_800_000_000.0)
    assert "ports 0: paused" in screen(made).splitlines()[-2]
    newer = replace(snapshot(), notes=(Note(1_900_000_000.0, "port 0 has stopped", False),))
    made.take(newer)
    assert "port 0 has stopped" in screen(made).splitlines()[-2]
