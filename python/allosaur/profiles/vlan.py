"""Many VLANs on one wire: the 802.1Q tag counts through a range.

It tests a switch or router with an interface in each VLAN: each must get its share.

Run it:  allosaur run vlan -t first=100,last=199 -m 100kpps -d 10 --local
Tunables: first, last (VLAN numbers, 1 to 4094), priority (0 to 7).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether

TAG_OFFSET = 14
"""Where the tag's two bytes are: after the addresses and the type 0x8100."""


class Vlan:
    """One stream through all VLANs in turn."""

    def get_streams(self, direction=0, first=1, last=100, priority=0):
        """Return the stream. The priority is the tag's three highest bits, so it is added to the number."""
        vm = STLVM()
        vm.var(name="vlan", min_value=first, max_value=last, size=2, op="inc")
        vm.write(fv_name="vlan", pkt_offset=TAG_OFFSET, add_val=priority << 13)
        tag = Dot1Q(vlan=first, prio=priority)
        frame = Ether() / tag / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return Vlan()
