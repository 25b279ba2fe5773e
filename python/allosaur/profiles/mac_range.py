"""Many source MAC addresses: the last four bytes count through a range.

It tests the address table of a switch: how many it learns, and what it does when the table is full.

Run it:  allosaur run mac_range -t hosts=50000 -m 100kpps -d 10 --local
Tunables: hosts (how many addresses), step (the distance of two addresses).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

FIRST = 0x01000000
"""The last four bytes of 02:00:01:00:00:00."""


class MacRange:
    """One stream of many hosts."""

    def get_streams(self, direction=0, hosts=1000, step=1):
        """Return the stream. The packet says its source, so the port does not put its own there."""
        vm = STLVM()
        last = FIRST + (hosts - 1) * step
        vm.var(name="host", min_value=FIRST, max_value=last, size=4, op="inc", step=step)
        vm.write(fv_name="host", pkt_offset="Ether.src", offset_fixup=2)
        addresses = IP(src="16.0.0.1", dst="48.0.0.1")
        frame = Ether(src="02:00:01:00:00:00") / addresses / UDP(sport=1025, dport=12) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return MacRange()
