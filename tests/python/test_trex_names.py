"""Every name of TRex's client: it answers, works, or says what it lacks."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import allosaur
import pytest
from allosaur import STLClient, STLError, STLProfile, STLProfileError
from allosaur.compat._missing import Missing, NotInAllosaurError
from allosaur.compat._missing_names import MODULES, NAMES
from allosaur.testing import MockTransport

LIST = Path(__file__).resolve().parents[1] / "data" / "trex_names.json"
MODULES_OF_TREX: dict[str, str] = json.loads(LIST.read_text())


@pytest.mark.parametrize("module", sorted(MODULES_OF_TREX))
def test_every_name_answers_or_says_what_it_lacks(module: str) -> None:
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        assert " is not in Allosaur yet: " in str(error)
        return
    for name in MODULES_OF_TREX[module].split():
        value = getattr(found, name)
        if isinstance(value, Missing):
            assert f"{name} is not in Allosaur yet: " in repr(value)


def test_the_list_is_whole() -> None:
    names = {name for words in MODULES_OF_TREX.values() for name in words.split()}
    assert len(MODULES_OF_TREX) > 150
    assert {"STLClient", "ASTFProfile", "stl_map_ports", "binascii", "is_valid_ipv4_ret", "NSCmds"} <= names
    assert set(NAMES) <= names
    for module in ("trex.emu.sim", "trex.examples.stl.ndr_bench"):
        with pytest.raises(ModuleNotFoundError, match=r"^trex\..* is not in Allosaur yet: "):
            importlib.import_module(module)
    assert not [name for name in MODULES if MODULES_OF_TREX.get(name)]


def test_a_module_that_nobody_has_is_no_promise() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'trex\.nothing'"):
        importlib.import_module("trex.nothing")
    with pytest.raises(ImportError, match="cannot import name 'STLNothing'"):
        exec("from trex.stl.api import STLNothing")


@pytest.mark.parametrize(
    "use",
    [
        "STLTaggedPktGroup(tpgid=1)",
        "TPGState.x",
        "class A(TPGState): pass",
        "with TPGState: pass",
        "list(TPGState)",
    ],
)
def test_using_what_is_missing_says_so(use: str) -> None:
    names: dict[str, Any] = {}
    exec("from trex.stl.api import *", names)
    with pytest.raises(NotInAllosaurError, match=r"tagged packet groups come later"):
        exec(use, names)


def test_a_profile_that_uses_what_is_missing_ends_at_that_line(tmp_path: Path) -> None:
    path = tmp_path / "tagged.py"
    path.write_text(
        "from trex_stl_lib.api import *\n"
        "class Profile:\n"
        "    def get_streams(self, **kwargs):\n"
        "        group = STLTaggedPktGroup(tpgid=0)\n"
        "def register():\n"
        "    return Profile()\n"
    )
    words = r"line 4: .*: STLTaggedPktGroup is not in Allosaur yet: tagged packet groups come later"
    with pytest.raises(STLProfileError, match=words):
        STLProfile.load(path)


def test_a_profile_uses_what_the_star_of_trex_has(tmp_path: Path) -> None:
    """Modules of Python and small functions, none of them imported by the profile."""
    path = tmp_path / "leaked.py"
    path.write_text(
        "from trex_stl_lib.api import *\n"
        "class Profile:\n"
        "    def get_streams(self, **kwargs):\n"
        "        head = binascii.unhexlify('0180c2000015000c29ebcb53') + struct.pack('!H', 0x88B5)\n"
        "        frame = Ether(head + bytes(46))\n"
        "        last = ipv4_str_to_num(is_valid_ipv4_ret('16.0.0.1')) + 9\n"
        "        vm = STLScVmRaw([STLVmFlowVar('a', min_value='16.0.0.1', max_value=last),\n"
        "                         STLVmWrFlowVar('a', 'Ethernet.src')])\n"
        "        name = os.path.basename(__file__) + re.sub('x', 'y', 'x') + json.dumps(listify(1))\n"
        "        return STLStream(name=name, packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont())\n"
        "def register():\n"
        "    return Profile()\n"
    )
    (stream,) = STLProfile.load(path).to_json()
    assert stream["name"] == "leaked.pyy[1]"
    variable, write = stream["vm"]["instructions"]
    assert (variable["max_value"], write["pkt_offset"]) == (0x1000000A, 6)


def test_functions_of_trex_utils() -> None:
    from trex.common.trex_types import listify, validate_type
    from trex.utils.common import (
        bitfield_to_str,
        calc_bps_L1,
        compress_ipv6,
        generate_ipv6,
        generate_ipv6_solicited_node,
        int2ipv6,
        ipv62int,
        is_valid_ipv6_ret,
        list_difference,
        multicast_mac_from_ipv6,
        natural_sorted_key,
    )

    assert generate_ipv6("02:00:00:00:00:01") == "fe80::1"[:4] + "::ff:fe00:1"
    assert generate_ipv6_solicited_node("2001:db8::12:3456") == "ff02::1:ff12:3456"
    assert multicast_mac_from_ipv6("ff02::1") == "33:33:00:00:00:01"
    assert ipv62int(int2ipv6(5, 7)) == (5, 7)
    assert compress_ipv6("1:1:0:0:0:1111:0:0") == "1:1::1111:0:0"
    assert is_valid_ipv6_ret("::1") == bytes(15) + b"\x01"
    assert (bitfield_to_str(0b101), bitfield_to_str(0)) == ("0, 2", "-")
    assert calc_bps_L1(8 * 64, 1) == 8 * 84
    assert sorted(["a10", "a2"], key=natural_sorted_key) == ["a2", "a10"]
    assert list_difference([1, 2, 3], [2]) == [1, 3]
    assert (listify(1), listify((1, 2))) == ([1], [1, 2])
    with pytest.raises(STLError, match="argument 'x' is of type 'int': give one of: str"):
        validate_type("x", 1, str)


def test_texts_of_trex_utils(monkeypatch: pytest.MonkeyPatch) -> None:
    from trex.utils import text_opts

    assert text_opts.bold("one\n\ntwo") == "\x1b[1mone\x1b[22m\n\n\x1b[1mtwo\x1b[22m"
    assert text_opts.format_text("plain", "red") == "plain"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert text_opts.clear_formatting(text_opts.format_text("plain", "red", "bold")) == "plain"
    assert text_opts.format_num(1_500_000, "bps") == "1.5 Mbps"
    assert text_opts.format_num(1234, compact=False) == "1,234"
    assert [text_opts.format_time(one) for one in (-1, 0, 0.0015, 90, 7200)] == [
        *("infinite", "zero", "1.50 [ms]", "1.50 [minutes]", "2.00 [hours]")
    ]
    assert text_opts.limit_string("abcdefgh", 6) == "abc..."
    assert text_opts.format_percentage(1.5) == "1.50 %"


PROFILE = """
from trex_stl_lib.api import *
import argparse

class Profile:
    def get_streams(self, direction, tunables, **kwargs):
        parser = argparse.ArgumentParser()
        parser.add_argument("--size", type=int, default=64)
        size = parser.parse_args(tunables).size - 4
        frame = Ether() / IP() / UDP(sport=1000 + direction) / bytes(size - 42)
        return [STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(pps=10))]

def register():
    return Profile()
"""


@pytest.mark.parametrize("tunables", ["-t size=128", "-t --size 128"])
def test_a_line_of_the_console_starts_a_profile(tmp_path: Path, tunables: str) -> None:
    path = tmp_path / "profile.py"
    path.write_text(PROFILE)
    transport = MockTransport(port_count=2)
    with STLClient(transport=transport) as client:
        client.acquire(ports=[0, 1])
        client.start_line(f" -f {path} -m 10mpps -d 5 --port 0 1 --force {tunables}")
        started = transport.requests("start_traffic")
        assert [one["port_id"] for one in started] == [0, 1]
        assert {(one["mul"]["type"], one["mul"]["value"], one["duration"]) for one in started} == {
            ("pps", 10e6, 5)
        }
        for port in (0, 1):
            (stream,) = client.ports[port].streams.values()
            assert stream.get_pkt_len() == 128
            assert int.from_bytes(stream.get_pkt()[34:36], "big") == 1000 + port
        with pytest.raises(STLError, match="there is no option --nonsense"):
            client.start_line(f"-f {path} --nonsense")
        assert client.get_port(0).get_layer_cfg() is client.get_port(0).status["attr"]["layer_cfg"]


def test_linked_ports_are_found_by_the_name_of_trex(monkeypatch: pytest.MonkeyPatch) -> None:
    from trex_stl_lib.api import stl_map_ports

    client = STLClient(transport=MockTransport())
    monkeypatch.setattr(client, "map_ports", lambda: {"bi": [(0, 1)]})
    assert stl_map_ports(client) == {"bi": [(0, 1)]}


@pytest.mark.parametrize("interface", ["allosaur.api", "trex.stl.api", "trex.astf.api", "trex_stl_lib.api"])
def test_the_star_has_what_profiles_use_unasked(interface: str) -> None:
    """Layers, and names of Python, that TRex's client gives to whoever imports all of it."""
    names: dict[str, Any] = {}
    exec(f"from {interface} import *", names)
    exec(
        "packet = Ether() / IP() / AH() / ESP()\n"
        "vrrp = VRRP(), VRRPv3(), EAPOL()\n"
        "load_contrib('mpls')\n"
        "Point = namedtuple('Point', 'x y')\n"
        "point = OrderedDict(x=choice([gcd(4, 6), 2]))\n"
        "found = glob.glob('/'), crc32(b''), yaml.safe_load('1')\n",
        names,
    )
    assert names["point"] == {"x": 2}
    assert "RC_OK is not in Allosaur yet" in repr(names["RC_OK"])


def copied(folder: Path) -> Path:
    """What a copy of TRex's repository looks like: scripts that import each other. Returns one of them."""
    examples = folder / "interactive" / "trex" / "examples" / "stl"
    examples.mkdir(parents=True)
    (examples / "rates.py").write_text("RATE = 7\n")
    script = examples / "burst.py"
    script.write_text(
        "from trex.examples.stl.rates import RATE\n"
        "from trex.stl.api import STLClient, STLTXCont\n"
        "print(STLTXCont(pps=RATE).rate, STLClient.__module__)\n"
    )
    return script


@pytest.mark.parametrize("way", ["run", "imported"])
def test_examples_are_found_in_a_copy_of_the_repository(tmp_path: Path, way: str) -> None:
    script = copied(tmp_path)
    ours = str(Path(allosaur.__file__).parents[1])
    path = [ours] if way == "run" else [ours, str(tmp_path / "interactive")]
    words = [str(script)] if way == "run" else ["-c", "import trex.examples.stl.burst"]
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        cwd=tmp_path,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "{'type': 'pps', 'value': 7} allosaur.client._client\n"


def test_examples_without_a_copy_say_where_they_are_looked_for() -> None:
    with pytest.raises(ModuleNotFoundError, match="in a copy of its repository, when the folder"):
        importlib.import_module("trex.examples.stl.burst")
