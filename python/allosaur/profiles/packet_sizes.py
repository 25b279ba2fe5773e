"""Every packet size from the smallest to the largest: one stream that is cut to another length each time.

It tests a device over all sizes in one run. The lengths in the IPv4 and UDP headers follow the size, and the
IPv4 checksum is correct.

Run it:  allosaur run packet_sizes -m 100kpps -d 10 --local
Tunables: largest (frame size with FCS, 65 to 9238), order (inc, dec or random).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

FCS, ETHERNET, IPV4 = 4, 14, 20


class PacketSizes:
    """One stream; its packet is as large as the largest, and is cut."""

    def get_streams(self, direction=0, largest=1518, order="inc"):
        """Return the stream."""
        headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12, chksum=0)
        vm = STLVM()
        vm.var(name="length", min_value=64 - FCS, max_value=largest - FCS, size=2, op=order)
        vm.trim(fv_name="length")
        vm.write(fv_name="length", pkt_offset="IP.len", add_val=-ETHERNET)
        vm.write(fv_name="length", pkt_offset="UDP.len", add_val=-(ETHERNET + IPV4))
        vm.fix_chksum()
        frame = headers / bytes(largest - FCS - len(headers))
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000), random_seed=1)]


def register():
    return PacketSizes()
