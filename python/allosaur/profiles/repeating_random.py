"""Random addresses that repeat: a hundred clients in a random order, over and over again.

It tests caches and flow tables: after the first round, every flow is known. Other than with plain random
values, the number of flows is exact.

Run it:  allosaur run repeating_random -t flows=1000 -m 100kpps -d 10 --local
Tunables: flows (how many values until they repeat), seed (which ones).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class RepeatingRandom:
    """One stream."""

    def get_streams(self, direction=0, flows=100, seed=7):
        """Return the stream."""
        vm = STLVM()
        vm.repeatable_random_var(
            "client", size=4, limit=flows, seed=seed, min_value="16.0.0.1", max_value="16.255.255.254"
        )
        vm.write(fv_name="client", pkt_offset="IP.src")
        vm.fix_chksum()
        frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12, chksum=0) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return RepeatingRandom()
