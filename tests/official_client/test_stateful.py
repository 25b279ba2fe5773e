"""Our stateful profile language makes of a profile exactly what TRex's official client makes of it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur import ASTFProfile, STLProfileError

HERE = Path(__file__).resolve().parent
#: A profile's file and its tunables.
Case = tuple[Path, dict[str, Any]]
Compile = Callable[[list[Case]], list[dict[str, Any]]]


@pytest.fixture
def theirs(client_python: str, client_environment: dict[str, str]) -> Compile:
    """What the official client makes of profiles, all in one process of its own."""

    def compile_all(cases: list[Case]) -> list[dict[str, Any]]:
        done = subprocess.run(
            [client_python, "-W", "ignore", str(HERE / "stateful.py")],
            input="\n".join(json.dumps([str(path), tunables]) for path, tunables in cases),
            capture_output=True,
            text=True,
            check=False,
            env=client_environment,
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        made: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
        return made

    return compile_all


def ours(path: Path, tunables: dict[str, Any]) -> Any:
    return json.loads(ASTFProfile.load(path, **tunables).to_json_str(pretty=False))


def test_each_command_and_tunable_is_the_same(theirs: Compile) -> None:
    case = (HERE / "all_commands.py", dict[str, Any]())
    (made,) = theirs([case])
    assert made["profile"] == ours(*case)
    words = {
        command["name"] for program in made["profile"]["program_list"] for command in program["commands"]
    }
    assert len(words) == 23


#: Small and large values that TRex accepts, among them the 1 of its own `param_mss_err.py`.
EDGES = """
from trex.astf.api import *

class Edges:
    def get_profile(self, tunables=None, section="tcp", name="mss", value=1, **kwargs):
        ends = ASTFIPGenDist(["16.0.0.1", "16.0.0.9"]), ASTFIPGenDist(["48.0.0.1", "48.0.0.9"])
        ip_gen = ASTFIPGen(dist_client=ends[0], dist_server=ends[1])
        asks, answers = ASTFProgram(), ASTFProgram()
        asks.send(b"GET /")
        answers.recv(5)
        whole, own = ASTFGlobalInfo(), ASTFGlobalInfoPerTemplate()
        for info in (whole, own):
            setattr(getattr(info, section), name, value)
        client = ASTFTCPClientTemplate(program=asks, ip_gen=ip_gen, glob_info=own)
        server = ASTFTCPServerTemplate(program=answers)
        template = ASTFTemplate(client_template=client, server_template=server)
        return ASTFProfile(default_ip_gen=ip_gen, templates=template, default_c_glob_info=whole)

def register():
    return Edges()
"""


def test_values_at_the_edge_are_accepted_by_both(theirs: Compile, tmp_path: Path) -> None:
    path = tmp_path / "edges.py"
    path.write_text(EDGES)
    settings = [("tcp", "mss", 1), ("tcp", "mss", 9), ("tcp", "mss", 9216), ("ip", "ttl", 255)]
    cases: list[Case] = [
        (path, {"section": section, "name": name, "value": value}) for section, name, value in settings
    ]
    for case, made in zip(cases, theirs(cases), strict=True):
        assert made.get("profile") == ours(*case), made.get("error")


def test_listings_are_the_same(theirs: Compile, listings: Path) -> None:
    case = (listings / "listing6.py", dict[str, Any]())
    (made,) = theirs([case])
    assert made["profile"] == ours(*case)


def test_captures_are_the_same(theirs: Compile, recorded: Path) -> None:
    captures = sorted((recorded / "pcap").glob("*.pcap"))
    good = [path for path in captures if path.name != "rtsp_short.pcap"]
    assert len(good) >= 20
    profile = HERE / "captured.py"
    names = ",".join(str(path) for path in good)
    cases: list[Case] = [
        (profile, {"files": names}),
        (profile, {"files": names, "delay": 10_000, "mtu": 300}),
        (profile, {"files": names, "delay": 1_000_000}),
        (profile, {"files": ",".join(str(path) for path in good[:4]), "percent": 25}),
    ]
    for case in cases:
        # A process each: the client keeps captures that it has cut.
        (made,) = theirs([case])
        assert made.get("profile") == ours(*case), made.get("error")


def test_a_capture_of_two_sessions_is_refused_by_both(theirs: Compile, recorded: Path) -> None:
    case = (HERE / "captured.py", {"files": str(recorded / "pcap" / "rtsp_short.pcap")})
    (made,) = theirs([case])
    assert "error" in made
    with pytest.raises(STLProfileError, match=r"rtsp_short.pcap, packet 12 is of another session: UDP"):
        ours(*case)


#: What only our own client has, so that the other cannot load it.
OURS = {"dns", "http_load", "http_pages", "http_server", "http_user_agents", "https_get"}


def test_example_profiles_are_the_same(theirs: Compile, tmp_path: Path) -> None:
    """Each example, with TRex's import name in place of ours."""
    root = HERE.parents[1]
    for capture in (root / "python" / "allosaur" / "captures").glob("*.pcap"):
        (tmp_path / capture.name).symlink_to(capture)
    cases: list[Case] = []
    for path in sorted((root / "profiles" / "stateful").glob("*.py")):
        if path.stem in OURS:
            continue
        text = path.read_text().replace("from allosaur import", "from trex.astf.api import")
        # TRex's client gives every profile the list `tunables`, so it must take more than it names.
        text = re.sub(r"(def get_profile\((?!.*kwargs).*)\):", r"\1, **kwargs):", text)
        assert "trex.astf.api" in text
        # A name of its own: the client imports it, and Python has an "http", too.
        copy = tmp_path / f"example_{path.name}"
        copy.write_text(text)
        cases.append((copy, {}))
    assert len(cases) >= 40
    for case, made in zip(cases, theirs(cases), strict=True):
        assert made.get("profile") == ours(*case), (case[0].name, made.get("error"))


def test_example_profiles_are_loaded_as_json(theirs: Compile, tmp_path: Path) -> None:
    """What we compile, TRex's client takes as a profile: also what only we have."""
    cases: list[Case] = []
    for name in OURS:
        path = tmp_path / f"{name}.json"
        profile = ASTFProfile.load(HERE.parents[1] / "profiles" / "stateful" / f"{name}.py")
        path.write_text(profile.to_json_str())
        cases.append((path, {}))
    for case, made in zip(cases, theirs(cases), strict=True):
        assert made["profile"] == json.loads(case[0].read_text())
