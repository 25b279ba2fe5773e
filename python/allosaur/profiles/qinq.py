"""Two VLAN tags: the inner one counts through the customers, the outer one through the providers.

It tests provider bridges (802.1ad) with many customers. The outer tag moves on each time that the inner one
has gone through all of its values: every pair occurs.

Run it:  allosaur run qinq -t customers=100,providers=10 -m 100kpps -d 10 --local
Tunables: customers, providers (how many VLANs, 1 to 4094).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

OUTER_TAG, INNER_TAG = 14, 18
"""Where the tags' two bytes are in the frame."""


class QinQ:
    """One stream through all pairs of tags."""

    def get_streams(self, direction=0, customers=10, providers=3):
        """Return the stream; `next_var` names the variable that moves when this one begins again."""
        vm = STLVM()
        vm.var(name="customer", min_value=1, max_value=customers, size=2, op="inc", next_var="provider")
        vm.var(name="provider", min_value=1, max_value=providers, size=2, op="inc")
        vm.write(fv_name="provider", pkt_offset=OUTER_TAG)
        vm.write(fv_name="customer", pkt_offset=INNER_TAG)
        tags = Dot1AD(vlan=1) / Dot1Q(vlan=1)
        frame = Ether() / tags / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return QinQ()
