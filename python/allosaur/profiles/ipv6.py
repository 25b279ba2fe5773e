"""IPv6 from many clients to many servers, with correct UDP checksums and nothing that computes them.

It tests an IPv6 device with many flows. The last two bytes of the source address count up while those of the
destination count down: their sum stays the same, and so does the checksum.

Run it:  allosaur run ipv6 -m 100kpps -d 10 --local
Tunables: flows (how many, 2 to 65535).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

LAST_TWO_BYTES = 14
"""Of the sixteen bytes of an address."""


class Ipv6:
    """One stream of many flows."""

    def get_streams(self, direction=0, flows=1000):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="client", min_value=1, max_value=flows, size=2, op="inc")
        vm.var(name="server", min_value=1, max_value=flows, size=2, op="dec")
        vm.write(fv_name="client", pkt_offset="IPv6.src", offset_fixup=LAST_TWO_BYTES)
        vm.write(fv_name="server", pkt_offset="IPv6.dst", offset_fixup=LAST_TWO_BYTES)
        addresses = IPv6(src="2001:db8:1::1", dst=f"2001:db8:2::{flows:x}")
        frame = Ether() / addresses / UDP(sport=1025, dport=12) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return Ipv6()
