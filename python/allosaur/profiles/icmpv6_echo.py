"""Ping over IPv6: echo requests to one host after the other, each with the next sequence number.

It tests which hosts answer over IPv6. ICMPv6 has a checksum over the addresses, too, so it is computed again
for every packet.

Run it:  allosaur run icmpv6_echo -t hosts=1000 -m 1kpps -d 10 --local
Tunables: hosts (how many addresses, 1 to 65535).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether

LAST_TWO_BYTES = 14


class Icmpv6Echo:
    """One stream of echo requests."""

    def get_streams(self, direction=0, hosts=100):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="host", min_value=1, max_value=hosts, size=2, op="inc")
        vm.var(name="sequence", min_value=0, max_value=65535, size=2, op="inc")
        vm.write(fv_name="host", pkt_offset="IPv6.dst", offset_fixup=LAST_TWO_BYTES)
        vm.write(fv_name="sequence", pkt_offset="ICMPv6EchoRequest.seq")
        vm.fix_chksum_icmpv6(l3_offset="IPv6", l4_offset="ICMPv6EchoRequest")
        addresses = IPv6(src="2001:db8:1::1", dst="2001:db8:2::1")
        frame = Ether() / addresses / ICMPv6EchoRequest(id=1, data=bytes(32))
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=100))]


def register():
    return Icmpv6Echo()
