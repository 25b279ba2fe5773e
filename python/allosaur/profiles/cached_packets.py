"""A cache: the server makes the first packets ahead and repeats them, which is faster than making each anew.

It tests a device at the highest rate with some variety. The packets repeat after `packets` of them, whatever
the program would have made next.

Run it:  allosaur run cached_packets -m 1mpps -d 10 --local
Tunables: packets (size of the cache, 1 to 10000).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class CachedPackets:
    """One stream with a cache."""

    def get_streams(self, direction=0, packets=254):
        """Return the stream; its range is as long as the cache, so no client is left out."""
        vm = STLVM()
        vm.var(name="client", min_value=1, max_value=packets, size=2, op="inc")
        vm.write(fv_name="client", pkt_offset="IP.src", offset_fixup=2)
        vm.fix_chksum()
        vm.set_cached(packets)
        frame = Ether() / IP(src="16.0.0.0", dst="48.0.0.1") / UDP(sport=1025, dport=12, chksum=0) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return CachedPackets()
