"""GRE: IPv4 in IPv4, with a key that tells tunnels apart and a client that counts inside each.

It tests a tunnel endpoint with many tunnels. Both IPv4 checksums are correct: the inner one is computed again
for every packet, the outer header never changes.

Run it:  allosaur run gre -t tunnels=64 -m 100kpps -d 10 --local
Tunables: tunnels (how many keys), clients (addresses in the tunnels, 1 to 65535).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import GRE, Ether


class Gre:
    """One stream; the program names the inner header "IP:1"."""

    def get_streams(self, direction=0, tunnels=16, clients=254):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="key", min_value=1, max_value=tunnels, size=4, op="inc")
        vm.var(name="client", min_value=1, max_value=clients, size=2, op="inc")
        vm.write(fv_name="key", pkt_offset="GRE.key")
        vm.write(fv_name="client", pkt_offset="IP:1.src", offset_fixup=2)
        vm.fix_chksum(offset="IP:1")
        outer = Ether() / IP(src="192.0.2.1", dst="192.0.2.2") / GRE(key_present=1, key=1)
        frame = outer / IP(src="16.0.0.0", dst="48.0.0.1") / UDP(sport=1025, dport=12, chksum=0) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return Gre()
