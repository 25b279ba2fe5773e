"""VXLAN: Ethernet frames in UDP. The network identifier and the inner client count through ranges.

It tests the tunnel endpoint of a data centre with many networks and many hosts. The outer source port stays;
the outer UDP checksum is zero, as the standard wants it, and the inner IPv4 checksum is correct.

Run it:  allosaur run vxlan -t networks=100,clients=50 -m 100kpps -d 10 --local
Tunables: networks (1 to 65535), clients (1 to 65535).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.layers.vxlan import VXLAN

VXLAN_PORT = 4789


class Vxlan:
    """One stream; "IP:1" is the second IP header, the inner one."""

    def get_streams(self, direction=0, networks=10, clients=100):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="network", min_value=1, max_value=networks, size=2, op="inc")
        vm.var(name="client", min_value=1, max_value=clients, size=2, op="inc")
        # The identifier has three bytes; two of them change.
        vm.write(fv_name="network", pkt_offset="VXLAN.vni", offset_fixup=1)
        vm.write(fv_name="client", pkt_offset="IP:1.src", offset_fixup=2)
        vm.fix_chksum(offset="IP:1")
        outer = Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=49152, dport=VXLAN_PORT, chksum=0)
        macs = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        inner = macs / IP(src="16.0.0.0", dst="48.0.0.1") / UDP(sport=1025, dport=12, chksum=0) / bytes(18)
        frame = outer / VXLAN(vni=1, flags=8) / inner
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return Vxlan()
