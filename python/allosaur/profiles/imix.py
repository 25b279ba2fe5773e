"""IMIX: the usual mix of sizes, seven packets of 64 bytes to four of 594 and one of 1518, from many clients.

It tests a device with sizes as they are on the internet. What must hold: each size arrives as often as it
was sent.

Run it:  allosaur run imix -m 1gbps -d 10 --ports 0,1 --local
Tunables: clients (source addresses, 1 to 65535).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

MIX = ((64, 28), (594, 16), (1518, 4))
"""Frame size in bytes with FCS, and packets per second."""


class Imix:
    """A stream of each size; the two directions are each other's mirror."""

    def get_streams(self, direction=0, clients=254):
        """Return the streams of one direction."""
        source, target = ("16.0.0.0", "48.0.0.1") if direction == 0 else ("48.0.0.0", "16.0.0.1")
        return [self.stream(source, target, clients, size, rate) for size, rate in MIX]

    def stream(self, source, target, clients, size, rate):
        """Return the stream of one size. Addresses count from .0.1, so they begin with the same two bytes."""
        vm = STLVM()
        vm.var(name="client", min_value=1, max_value=clients, size=2, op="inc")
        vm.write(fv_name="client", pkt_offset="IP.src", offset_fixup=2)
        vm.fix_chksum()
        headers = Ether() / IP(src=source, dst=target) / UDP(sport=1025, dport=53, chksum=0)
        frame = headers / bytes(size - 4 - len(headers))
        return STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=rate))


def register():
    return Imix()
