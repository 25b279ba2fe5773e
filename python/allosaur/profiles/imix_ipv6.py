"""IMIX for IPv6: the usual mix of sizes, the smallest as small as IPv6 and UDP can be.

It tests an IPv6 device with sizes as they are on the internet. The flow label counts, so that a device that
balances by it sees many flows.

Run it:  allosaur run imix_ipv6 -m 1gbps -d 10 --ports 0,1 --local
Tunables: flows (how many flow labels, 1 to 65535).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

MIX = ((78, 28), (594, 16), (1518, 4))
"""Frame size in bytes with FCS, and packets per second."""
FLOW_LABEL_OFFSET = 14 + 2
"""The lower two bytes of the label; the upper four bits stay zero. No checksum covers it."""


class ImixIpv6:
    """A stream of each size; the two directions are each other's mirror."""

    def get_streams(self, direction=0, flows=1000):
        """Return the streams of one direction."""
        source, target = ("2001:db8:1::1", "2001:db8:2::1")[:: 1 if direction == 0 else -1]
        return [self.stream(source, target, flows, size, rate) for size, rate in MIX]

    def stream(self, source, target, flows, size, rate):
        """Return the stream of one size."""
        vm = STLVM()
        vm.var(name="flow", min_value=1, max_value=flows, size=2, op="inc")
        vm.write(fv_name="flow", pkt_offset=FLOW_LABEL_OFFSET)
        headers = Ether() / IPv6(src=source, dst=target) / UDP(sport=1025, dport=53)
        packet = STLPktBuilder(pkt=headers / bytes(size - 4 - len(headers)), vm=vm)
        return STLStream(packet=packet, mode=STLTXCont(pps=rate))


def register():
    return ImixIpv6()
