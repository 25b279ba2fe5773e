"""Packets are built, and profiles read, without a question to the machine's network.

Each test runs in a process of its own, where an audit hook notes whatever opens a socket or looks up a name.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HOOK = """
import json, sys
import allosaur.api
asked = []
def note(event, arguments):
    if event.startswith("socket."):
        asked.append(f"{event} {arguments[1:3]}")
sys.addaudithook(note)
"""


def run(script: str, *words: str) -> dict[str, object]:
    """What a script prints as JSON on its last line; it knows `asked`."""
    done = subprocess.run(
        [sys.executable, "-c", HOOK + textwrap.dedent(script), *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    assert "MAC address" not in done.stderr
    return result


def test_shipped_profiles_ask_nobody() -> None:
    found = run("""
    from allosaur import ASTFProfile, EMUProfile, STLProfile
    from allosaur.cli import _shipped
    kinds = (STLProfile, ASTFProfile, EMUProfile)
    questions, read = {}, {}
    for name, path in _shipped.files().items():
        for kind in kinds:
            try:
                kind.load(str(path))
            except Exception as error:
                read.setdefault(name, str(error))
            else:
                read[name] = ""
                break
        if asked:
            questions[name] = list(asked)
            asked.clear()
    failed = {name: error for name, error in read.items() if error}
    print(json.dumps({"questions": questions, "failed": failed, "read": len(read)}))
    """)
    assert found["questions"] == {}
    assert found["failed"] == {}
    assert int(str(found["read"])) > 50


def test_the_template_of_new_asks_nobody(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "allosaur.cli", "new", "mine"], cwd=tmp_path, check=True, capture_output=True
    )
    found = run(
        """
        from allosaur import STLProfile
        profile = STLProfile.load(sys.argv[1])
        print(json.dumps({"asked": asked, "streams": len(profile.get_streams())}))
        """,
        str(tmp_path / "mine.py"),
    )
    assert found["asked"] == []
    assert int(str(found["streams"])) > 0


PROFILE = """
{imports}

{work}


class Mine:
    def get_streams(self, direction=0, port_id=0, **kwargs):
        return STLStream(packet=STLPktBuilder(pkt=packet))

    def get_profile(self, *arguments, **kwargs):
        return None


def register():
    return Mine()
"""

WORKS = {
    "length": 'packet = Ether() / IP(dst="10.1.1.1") / UDP()\nlen(packet)',
    "length, IPv6": 'packet = Ether() / IPv6(dst="2001:db8::1") / UDP()\nlen(packet)',
    "tags": 'packet = Ether() / Dot1Q(vlan=5) / IP(dst="10.1.1.1") / UDP()\nlen(packet)',
    "ARP": 'packet = Ether() / ARP(op=3, pdst="10.1.1.1")\nlen(packet)',
    "802.3": 'packet = Dot3() / LLC() / SNAP() / IP(dst="10.1.1.1") / UDP()\nlen(packet)',
    "shown": 'packet = Ether() / IP(dst="10.1.1.1") / UDP()\npacket.show2(dump=True)\npacket.summary()',
    "asked by hand": 'packet = Ether() / IP()\ngetmacbyip("10.1.1.1")\nlen(packet)',
    "asked by hand, IPv6": (
        "packet = Ether() / IP()\nfrom scapy.layers.inet6 import getmacbyip6\n"
        'getmacbyip6("2001:db8::1")\nlen(packet)'
    ),
    "a network": 'packet = Ether() / IP(dst="10.1.1.0/24") / UDP()\nlen(packet)',
}


@pytest.mark.parametrize("imports", ["from allosaur.api import *", "from trex.stl.api import *", "own"])
@pytest.mark.parametrize("name", WORKS)
def test_whatever_a_profile_does_with_a_packet(tmp_path: Path, name: str, imports: str) -> None:
    # What a profile imports by itself, before this package has loaded Scapy, is changed as well.
    own = "from scapy.all import *\nfrom allosaur import STLPktBuilder, STLStream"
    (tmp_path / "mine.py").write_text(
        PROFILE.format(imports=own if imports == "own" else imports, work=WORKS[name])
    )
    # A route that leads to a gateway which nobody is, so that there is something to ask for.
    found = run(
        """
        from allosaur import STLProfile
        from scapy.config import conf
        import scapy.route6
        conf.route.routes = [(0, 0, "192.0.2.1", "lo", "192.0.2.2", 0)]
        conf.route6.routes = [("::", 0, "2001:db8::ff", "lo", ["2001:db8::2"], 0)]
        conf.loopback_name = "none"
        profile = STLProfile.load(sys.argv[1])
        print(json.dumps({"asked": asked, "packet": profile.get_streams()[0].to_json()["packet"]["binary"]}))
        """,
        str(tmp_path / "mine.py"),
    )
    assert found["asked"] == []


def test_scapy_loaded_by_the_profile_itself_asks_nobody(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        PROFILE.format(
            imports="from scapy.layers.inet import IP, UDP\nfrom scapy.layers.l2 import Ether",
            work="packet = Ether() / IP(dst='10.1.1.1') / UDP()\nfound = bytes(packet).hex()",
        )
    )
    script = """
    import json, sys
    from allosaur.streams._loader import located_module
    from pathlib import Path
    assert "scapy" not in sys.modules
    with located_module(Path(sys.argv[1])) as module:
        print(json.dumps(module.found))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "mine.py")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    frame = bytes.fromhex(json.loads(done.stdout))
    assert frame[:12].hex() == "000000010000" + "000000020000"
    assert frame[26:30] == bytes([16, 0, 0, 1])


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ("IP(dst='localhost')", "'localhost' is no IPv4 address"),
        ("IP(src='www.example.com/24')", "'www.example.com' is no IPv4 address"),
        ("IPv6(dst='localhost')", "'localhost' is no IPv6 address"),
        ("IPv6() / IPv6ExtHdrRouting(addresses=['localhost'])", "'localhost' is no IPv6 address"),
    ],
)
def test_names_of_hosts_are_refused(tmp_path: Path, layer: str, words: str) -> None:
    (tmp_path / "mine.py").write_text(
        PROFILE.format(imports="from allosaur.api import *", work=f"packet = Ether() / {layer}")
    )
    found = run(
        """
        from allosaur import STLProfile, STLProfileError
        try:
            STLProfile.load(sys.argv[1])
        except STLProfileError as error:
            print(json.dumps({"asked": asked, "error": str(error)}))
        """,
        str(tmp_path / "mine.py"),
    )
    assert found["asked"] == []
    assert words in str(found["error"])
    assert "give an address" in str(found["error"])
    assert "mine.py, line" in str(found["error"])


def test_every_layer_is_built_without_a_question() -> None:
    found = run("""
    import scapy.route6
    from scapy.config import conf
    from scapy.packet import Packet
    from allosaur.api import Ether, IP, IPv6
    from allosaur.packets._offline import offline
    from allosaur.packets._scapy_star import scapy_star
    conf.route.routes = [(0, 0, "192.0.2.1", "lo", "192.0.2.2", 0)]
    conf.route6.routes = [("::", 0, "2001:db8::ff", "lo", ["2001:db8::2"], 0)]
    conf.loopback_name = "none"
    questions, built = {}, 0
    with offline():
        for name, kind in scapy_star().items():
            if not (isinstance(kind, type) and issubclass(kind, Packet)):
                continue
            for below in (Ether(), Ether() / IP(dst="10.1.1.1"), Ether() / IPv6(dst="2001:db8::1")):
                try:
                    bytes(below / kind())
                    built += 1
                except Exception:
                    pass  # Not every layer can be built of nothing.
                if asked:
                    questions[name] = list(asked)
                    asked.clear()
    print(json.dumps({"questions": questions, "built": built}))
    """)
    assert found["questions"] == {}
    assert int(str(found["built"])) > 1000


# What a script does outside of profiles: with the names of either package it asks nobody, either.
SCRIPTS = {
    "length": 'len(Ether() / IP(dst="10.1.1.1") / UDP())',
    "length, IPv6": 'len(Ether() / IPv6(dst="2001:db8::1") / UDP())',
    "builder": 'STLPktBuilder(pkt=Ether() / IP(dst="10.1.1.1") / UDP(), build_raw=True)',
    "pushed": 'PacketBuffer(Ether() / IP(dst="10.1.1.1") / UDP())',
}


@pytest.mark.parametrize("names", ["allosaur.api", "trex.stl.api", "trex_stl_lib.api"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_that_build_packets_ask_nobody(name: str, names: str) -> None:
    found = run(f"""
    import scapy.route6
    from scapy.config import conf
    from {names} import *
    from allosaur import PacketBuffer
    conf.route.routes = [(0, 0, "192.0.2.1", "lo", "192.0.2.2", 0)]
    conf.route6.routes = [("::", 0, "2001:db8::ff", "lo", ["2001:db8::2"], 0)]
    conf.loopback_name = "none"
    {SCRIPTS[name]}
    print(json.dumps({{"asked": asked}}))
    """)
    assert found["asked"] == []


def test_scapy_still_asks_when_it_sends_by_itself() -> None:
    """Who sends with Scapy out of this machine's own interfaces wants its answers."""
    found = run("""
    import scapy.route6, scapy.layers.l2
    from scapy.config import conf
    from scapy.supersocket import SuperSocket
    from allosaur.api import ARP, Ether, IP, UDP
    conf.route.routes = [(0, 0, "192.0.2.1", "lo", "192.0.2.2", 0)]
    conf.loopback_name = "none"
    wanted = []
    def answer(packet, **arguments):
        wanted.append(packet.pdst)
        return Ether() / ARP(hwsrc="02:00:00:00:00:01")
    scapy.layers.l2.srp1 = answer
    socket = SuperSocket.__new__(SuperSocket)
    socket.ins, socket.outs = None, type("Out", (), {"send": staticmethod(len)})()
    socket.send(Ether() / IP(dst="10.1.1.1") / UDP())
    print(json.dumps({"wanted": wanted}))
    """)
    assert found["wanted"] == ["192.0.2.1"]
