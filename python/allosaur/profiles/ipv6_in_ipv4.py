"""IPv6 in IPv4 (6in4): many IPv6 clients behind one IPv4 tunnel.

It tests the end of a tunnel, or a device on the way that looks inside. The inner source counts up while the
inner destination counts down: their sum, and so the UDP checksum, stays right.

Run it:  allosaur run ipv6_in_ipv4 -m 100kpps -d 10 --local
Tunables: clients (2 to 65535).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

LAST_TWO_BYTES = 14


class Ipv6InIpv4:
    """One stream of many flows in one tunnel."""

    def get_streams(self, direction=0, clients=1000):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="client", min_value=1, max_value=clients, size=2, op="inc")
        vm.var(name="server", min_value=1, max_value=clients, size=2, op="dec")
        vm.write(fv_name="client", pkt_offset="IPv6.src", offset_fixup=LAST_TWO_BYTES)
        vm.write(fv_name="server", pkt_offset="IPv6.dst", offset_fixup=LAST_TWO_BYTES)
        inner = IPv6(src="2001:db8:1::1", dst=f"2001:db8:2::{clients:x}") / UDP(sport=1025, dport=12)
        frame = Ether() / IP(src="192.0.2.1", dst="192.0.2.2", proto=41) / inner / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return Ipv6InIpv4()
