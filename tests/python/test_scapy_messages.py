"""Scapy: its warnings of missing routes are gone, others stay, and values that it would cut are refused."""

from __future__ import annotations

import subprocess
import sys

import pytest
from allosaur import STLPacketError, STLPktBuilder
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

SCRIPT = """
import logging
from scapy.config import conf
import scapy.route, scapy.route6
conf.route.routes.clear(); conf.route.invalidate_cache()
conf.route6.routes.clear(); conf.route6.invalidate_cache()
from allosaur import STLProfile
from allosaur.cli import _shipped
for name in ("imix", "imix_ipv6"):
    STLProfile.load(_shipped.files()[name])
# Without the silence this is what Scapy says, once a line.
logging.getLogger("scapy.runtime").warning("No route found for IPv4 destination %s (no default route?)", "x")
logging.getLogger("scapy.runtime").warning("something else")
"""


def test_missing_routes_are_not_warned_of() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert "No route found" not in done.stderr
    assert "something else" in done.stderr


@pytest.mark.parametrize(
    ("packet", "words"),
    [
        (
            Ether() / Dot1Q(vlan=5000) / IP() / UDP(),
            r"Dot1Q\(vlan=5000\): the field has 12 bits, give 0 to 4095",
        ),
        (Ether() / IP(frag=0x2000) / UDP(), r"IP\(frag=8192\)"),
    ],
    ids=["VLAN", "fragment"],
)
def test_values_that_scapy_would_cut_are_refused(packet: Packet, words: str) -> None:
    with pytest.raises(STLPacketError, match=words):
        STLPktBuilder(pkt=packet)


def test_values_that_fit_are_taken() -> None:
    STLPktBuilder(pkt=Ether() / Dot1Q(vlan=4095, prio=7) / IP(flags="DF", frag=0x1FFF) / UDP())
