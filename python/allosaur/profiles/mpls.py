"""MPLS with two labels: the transport label stays, the service label counts through a range.

It tests a provider's router with many services. A label is the upper 20 bits of four bytes, so a variable of
four bytes that steps by 4096 changes the label and nothing else.

Run it:  allosaur run mpls -t services=500 -m 100kpps -d 10 --local
Tunables: services (how many labels, from 1000 on).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

FIRST_LABEL, TTL = 1000, 64
BOTTOM_OF_STACK = 1 << 8
SERVICE_OFFSET = 14 + 4
"""After Ethernet and the first label."""


class Mpls:
    """One stream of many services."""

    def get_streams(self, direction=0, services=100):
        """Return the stream."""
        vm = STLVM()
        first = FIRST_LABEL << 12 | BOTTOM_OF_STACK | TTL
        last = first + (services - 1 << 12)
        vm.var(name="service", min_value=first, max_value=last, size=4, op="inc", step=1 << 12)
        vm.write(fv_name="service", pkt_offset=SERVICE_OFFSET)
        labels = MPLS(label=16, s=0, ttl=TTL) / MPLS(label=FIRST_LABEL, s=1, ttl=TTL)
        inner = IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12) / bytes(18)
        frame = Ether(type=0x8847) / labels / inner
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return Mpls()
