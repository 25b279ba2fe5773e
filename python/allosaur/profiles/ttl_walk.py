"""Every TTL from one to thirty: what a traceroute sends, at any rate.

It tests how a router answers packets that have come to their end, and that doing so does not slow the others
down. The IPv4 checksum follows the TTL.

Run it:  allosaur run ttl_walk -m 10kpps -d 10 --local
Tunables: hops (the highest TTL, 1 to 255).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class TtlWalk:
    """One stream."""

    def get_streams(self, direction=0, hops=30):
        """Return the stream; the port counts with the TTL, so that an answer says which packet it is for."""
        vm = STLVM()
        vm.var(name="ttl", min_value=1, max_value=hops, size=1, op="inc")
        vm.var(name="probe", min_value=33435, max_value=33434 + hops, size=2, op="inc")
        vm.write(fv_name="ttl", pkt_offset="IP.ttl")
        vm.write(fv_name="probe", pkt_offset="UDP.dport")
        vm.fix_chksum()
        addresses = IP(src="16.0.0.1", dst="48.0.0.1", ttl=1)
        frame = Ether() / addresses / UDP(sport=1025, dport=33435, chksum=0) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return TtlWalk()
