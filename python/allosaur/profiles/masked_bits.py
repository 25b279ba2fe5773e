"""Single bits: the priority of a VLAN tag counts while its number stays as it is in the packet.

It tests queues by priority (802.1p) inside one VLAN. A masked write changes the bits of its mask and leaves
the others alone.

Run it:  allosaur run masked_bits -t vlan=42 -m 100kpps -d 10 --local
Tunables: vlan (1 to 4094).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether

TAG_OFFSET = 14
PRIORITY_MASK, PRIORITY_SHIFT = 0xE000, 13
"""The upper three bits of the tag's two bytes."""


class MaskedBits:
    """One stream through all priorities."""

    def get_streams(self, direction=0, vlan=42):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="priority", min_value=0, max_value=7, size=1, op="inc")
        vm.write_mask(
            fv_name="priority",
            pkt_offset=TAG_OFFSET,
            pkt_cast_size=2,
            mask=PRIORITY_MASK,
            shift=PRIORITY_SHIFT,
        )
        addresses = IP(src="16.0.0.1", dst="48.0.0.1")
        frame = Ether() / Dot1Q(vlan=vlan) / addresses / UDP(sport=1025, dport=12) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return MaskedBits()
