"""A share of the line rate: as much as the link can carry, or a part of it.

It tests throughput: at 100 % every gap between frames is the shortest that Ethernet allows. A link that is
slower than what feeds it must lose exactly the difference.

Run it:  allosaur run line_rate -t size=1518,share=50 -d 10 --local
Tunables: size (frame size in bytes with FCS, 64 to 9238), share (percent of the line rate).
"""

from allosaur import STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class LineRate:
    """One stream whose rate is a percentage."""

    def get_streams(self, direction=0, size=1518, share=10):
        """Return the stream."""
        headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12)
        frame = headers / bytes(size - 4 - len(headers))
        return [STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(percentage=share))]


def register():
    return LineRate()
