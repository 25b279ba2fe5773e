"""Stateful profiles that cannot work, given to a real server: each is refused with the place and the reason,
nothing starts, nothing is lost; and a profile of 30 MB, while others go on being answered.
"""

from __future__ import annotations

import base64
import copy
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import ASTFClient, STLError
from allosaur.server import LocalServer

WAIT_S = 120
ANSWER_BYTES = 2_000
FLOWS = 20

GOOD: dict[str, Any] = {
    "buf_list": [
        base64.b64encode(b"ask").decode(),
        {"base": base64.b64encode(b"answer").decode(), "size": ANSWER_BYTES, "fill": "eA=="},
    ],
    "ip_gen_dist_list": [
        {
            "dir": "c",
            "ip_start": "16.0.0.1",
            "ip_end": "16.0.0.254",
            "distribution": "seq",
            "ip_offset": "1.0.0.0",
        },
        {
            "dir": "s",
            "ip_start": "48.0.0.1",
            "ip_end": "48.0.0.254",
            "distribution": "seq",
            "ip_offset": "1.0.0.0",
        },
    ],
    "program_list": [
        {"commands": [{"name": "tx", "buf_index": 0}, {"name": "rx", "min_bytes": ANSWER_BYTES}]},
        {"commands": [{"name": "rx", "min_bytes": 3}, {"name": "tx", "buf_index": 1}]},
    ],
    "templates": [
        {
            "client_template": {
                "program_index": 0,
                "port": 80,
                "cps": 1000,
                "limit": FLOWS,
                "cluster": {},
                "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}},
            },
            "server_template": {"program_index": 1, "assoc": [{"port": 80}]},
        }
    ],
}

SET, JUMP = {"name": "set_var", "id": 0, "val": 2}, {"name": "jmp_nz", "id": 0, "offset": 9}

#: What is wrong: where, what, and the words that the error must have.
WRONG: dict[str, tuple[str, Any, list[str]]] = {
    "a buffer that is not there": (
        "program_list/1/commands",
        [{"name": "tx", "buf_index": 7}],
        ["template 0", "server program 1", "command 0 (tx)", "buf_index is 7"],
    ),
    "a jump outside of the program": (
        "program_list/0/commands",
        [SET, JUMP],
        ["template 0", "client program 0", "command 1 (jmp_nz)", "offset 9"],
    ),
    "a program that never ends": (
        "program_list/0/commands",
        [SET, {"name": "jmp_cmp", "offset": -1}],
        ["template 0", "client program 0", "command 1 (jmp_cmp)", "loop"],
    ),
    "an empty pool": ("ip_gen_dist_list/0/ip_end", "15.0.0.0", ["ip_gen_dist_list[0]", "before ip_start"]),
    "fewer clients than cores": (
        "ip_gen_dist_list/0/ip_end",
        "16.0.0.1",
        ["1 client address", "2 data cores"],
    ),
    "a tunable out of range": (
        "c_glob_info",
        {"tcp": {"initwnd": 21}},
        ["c_glob_info.tcp.initwnd is 21", "1 to 20"],
    ),
    "a tunable of another type": ("c_glob_info", {"tcp": {"mss": "big"}}, ["c_glob_info.tcp.mss"]),
    "port 0": ("templates/0/client_template/port", 0, ["templates[0].client_template.port", "is 0"]),
    "a rate of nothing": ("templates/0/client_template/cps", 0, ["templates[0].client_template.cps"]),
    "not a number": ("templates/0/client_template/cps", float("nan"), ["JSON"]),
    "broken base64": ("buf_list/0", "?", ["buf_list[0] is not base64"]),
    "a name that is too long": ("tg_names", ["x" * 1_000], ["tg_names[0]"]),
    "a list where an object belongs": ("templates/0", [], ["templates[0]"]),
    "no templates": ("templates", [], ["templates is empty"]),
}


def changed(path: str, value: Any) -> dict[str, Any]:
    profile = copy.deepcopy(GOOD)
    *way, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    place: Any = profile
    for step in way:
        place = place[step]
    place[last] = value
    return profile


@pytest.fixture(scope="module")
def running() -> Iterator[LocalServer]:
    """A stateful server with two data threads: each test begins with a reset."""
    try:
        from allosaur.server import find_binary

        find_binary()
    except STLError as error:
        pytest.skip(f"no server binary: {error}")
    with LocalServer(stateful=True, cores=2) as server:
        yield server


@pytest.fixture
def live(running: LocalServer) -> Iterator[Any]:
    with running.client(username="alice") as connected:
        connected.reset()
        yield connected


def written(folder: Path, profile: dict[str, Any]) -> str:
    path = folder / "profile.json"
    path.write_text(json.dumps(profile), encoding="utf-8")
    return str(path)


def runs_whole(client: ASTFClient, folder: Path, profile: dict[str, Any] = GOOD) -> None:
    """Load, start and wait: all flows get all bytes."""
    client.load_profile(written(folder, profile))
    client.start(duration=60)
    client.wait_on_traffic(timeout=WAIT_S)
    traffic = client.get_traffic_stats()
    assert traffic["client"]["tcps_closed"] == FLOWS
    assert traffic["client"]["tcps_rcvbyte"] == FLOWS * ANSWER_BYTES


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_work_is_refused_by_name(live: Any, tmp_path: Path, name: str) -> None:
    path, value, words = WRONG[name]
    with pytest.raises(STLError) as refused:
        live.load_profile(written(tmp_path, changed(path, value)))
        live.start(duration=5)
    text = str(refused.value)
    missing = [word for word in words if word not in text]
    assert not missing and len(text) < 2_000, text
    counters = live.get_traffic_stats()
    assert not counters["client"].get("tcps_connattempt"), "nothing started"
    live.reset()
    runs_whole(live, tmp_path)


def test_ranges_that_overlap_name_both_templates(live: Any, tmp_path: Path) -> None:
    wrong = copy.deepcopy(GOOD)
    wrong["templates"].append(copy.deepcopy(wrong["templates"][0]))
    with pytest.raises(STLError, match="template 1: its server range on port 80 overlaps that of template 0"):
        live.load_profile(written(tmp_path, wrong))
        live.start(duration=5)
    live.reset()
    runs_whole(live, tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000])
def test_what_is_no_profile_is_refused(live: Any, tmp_path: Path, text: str) -> None:
    path = tmp_path / "profile.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(STLError):
        live.load_profile(str(path))
        live.start(duration=5)
    live.reset()
    runs_whole(live, tmp_path)


def test_others_are_answered_while_thirty_megabytes_are_read(
    running: LocalServer, live: Any, tmp_path: Path
) -> None:
    large = copy.deepcopy(GOOD)
    data = bytes(range(256)) * (22 * 4096)
    large["buf_list"].append(base64.b64encode(data).decode())
    assert len(json.dumps(large)) > 30_000_000
    done, answers, problems = threading.Event(), 0, []

    def ask() -> None:
        nonlocal answers
        try:
            with running.client(username="bob") as connected:
                other: Any = connected
                while not done.is_set():
                    assert other.get_profiles_state() is not None
                    answers += 1
        except (STLError, AssertionError) as problem:
            problems.append(problem)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        runs_whole(live, tmp_path, large)
    finally:
        done.set()
        asking.join()
    assert not problems and answers > 0
    with pytest.raises(STLError, match=r"67108864|64 MiB|too long|too large"):
        large["buf_list"] += [base64.b64encode(data).decode() + "A" * 4, "A" * 20_000_000]
        live.reset()
        live.load_profile(written(tmp_path, large))
        live.start(duration=5)
    live.reset()
    runs_whole(live, tmp_path)
