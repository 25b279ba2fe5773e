"""Ping every address of a net: ICMP echo requests to one host after the other.

It tests which hosts answer, and a device's limit of answers per second. The ICMP checksum does not cover the
addresses, so only that of IPv4 is computed again.

Run it:  allosaur run ping_sweep -m 1kpps -d 10 --local
Tunables: first, last (addresses).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether


class PingSweep:
    """One stream of echo requests."""

    def get_streams(self, direction=0, first="48.0.0.1", last="48.0.0.254"):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="host", min_value=first, max_value=last, size=4, op="inc")
        vm.write(fv_name="host", pkt_offset="IP.dst")
        vm.fix_chksum()
        frame = Ether() / IP(src="16.0.0.1", dst=first) / ICMP(type="echo-request", id=1, seq=1) / bytes(32)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=100))]


def register():
    return PingSweep()
