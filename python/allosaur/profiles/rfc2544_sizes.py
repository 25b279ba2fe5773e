"""The frame sizes of RFC 2544 one after the other: a list of lengths, one packet of each in turn.

It tests a device with the sizes that its data sheet names, in one run. For a throughput test of each size
alone, use constant_stream with -t size=...

Run it:  allosaur run rfc2544_sizes -m 100kpps -d 10 --local
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""In bytes with FCS (RFC 2544, section 9.1)."""
FCS, ETHERNET, IPV4 = 4, 14, 20


class Rfc2544Sizes:
    """One stream; its packet is as large as the largest, and is cut."""

    def get_streams(self, direction=0):
        """Return the stream."""
        lengths = [size - FCS for size in SIZES]
        vm = STLVM()
        # The range is not used where there is a list of values.
        vm.var(name="length", min_value=60, max_value=1514, size=2, op="inc", value_list=lengths)
        vm.trim(fv_name="length")
        vm.write(fv_name="length", pkt_offset="IP.len", add_val=-ETHERNET)
        vm.write(fv_name="length", pkt_offset="UDP.len", add_val=-(ETHERNET + IPV4))
        vm.fix_chksum()
        headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=7, chksum=0)
        frame = headers / bytes(max(lengths) - len(headers))
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return Rfc2544Sizes()
