"""Two ways to count over many cores: all cores together, or each core alone.

It tests a device that keeps flows by destination. The source address is shared: all cores together count as
one would. The destination is not (`split_to_cores=False`): each core counts through all of them, so N cores
send each one N times in a row.

Run it:  allosaur run unsplit_counter -m 100kpps -d 10 --local
See it:  allosaur sim unsplit_counter -o split.pcap --cores 4 --limit 100
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class UnsplitCounter:
    """One stream with a variable of each kind."""

    def get_streams(self, direction=0):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="shared", min_value="16.0.0.1", max_value="16.0.0.250", size=4, op="inc")
        vm.var(
            name="whole", min_value="48.0.0.1", max_value="48.0.0.7", size=4, op="inc", split_to_cores=False
        )
        vm.write(fv_name="shared", pkt_offset="IP.src")
        vm.write(fv_name="whole", pkt_offset="IP.dst")
        vm.fix_chksum()
        frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12, chksum=0) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return UnsplitCounter()
