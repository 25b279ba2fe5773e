"""A SYN flood: connection requests to one web server from random addresses and ports.

It tests what a firewall or server does when clients ask and never go on. Use it on your own lab only. The
same seed gives the same packets in every run.

The IPv4 checksum is correct in every packet. The TCP checksum is not: it stays that of the first packet,
so a target that checks it drops the packets. That is enough to load a firewall.

Run it:  allosaur run syn_flood -m 100kpps -d 10 --local
Tunables: seed (1 or more).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether


class SynFlood:
    """One stream; source address and source port are random."""

    def get_streams(self, direction=0, seed=0x1234):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="address", min_value="16.0.0.0", max_value="18.0.0.254", size=4, op="random")
        vm.var(name="port", min_value=1025, max_value=65000, size=2, op="random")
        vm.write(fv_name="address", pkt_offset="IP.src")
        vm.fix_chksum()
        vm.write(fv_name="port", pkt_offset="TCP.sport")
        frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / TCP(dport=80, flags="S")
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000), random_seed=seed)]


def register():
    return SynFlood()
