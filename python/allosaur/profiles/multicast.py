"""Multicast: one sender, many groups, each with the MAC address that belongs to it.

It tests how a switch or router copies multicast to those who joined. The last three bytes of the group's
address and of its MAC are alike (RFC 1112), so one variable writes both.

Run it:  allosaur run multicast -t groups=100 -m 100kpps -d 10 --local
Tunables: groups (1 to 65535).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class Multicast:
    """One stream to all groups in turn."""

    def get_streams(self, direction=0, groups=16):
        """Return the stream; the lower two bytes are the number of the group."""
        vm = STLVM()
        vm.var(name="group", min_value=1, max_value=groups, size=2, op="inc")
        vm.write(fv_name="group", pkt_offset="Ether.dst", offset_fixup=4)
        vm.write(fv_name="group", pkt_offset="IP.dst", offset_fixup=2)
        vm.fix_chksum()
        addresses = IP(src="16.0.0.1", dst="239.1.0.0", ttl=32)
        frame = Ether(dst="01:00:5e:01:00:00") / addresses / UDP(sport=5004, dport=5004, chksum=0) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return Multicast()
