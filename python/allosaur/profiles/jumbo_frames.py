"""Jumbo frames of 9 KB beside small ones: most bytes are in the large, half of the packets are small.

It tests that a path takes frames above 1518 bytes, and that small packets do not wait behind large ones
for longer than one frame takes.

Run it:  allosaur run jumbo_frames -m 1gbps -d 10 --local
Tunables: size (of the large frames in bytes with FCS, 1519 to 9238).
"""

from allosaur import STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class JumboFrames:
    """Two streams of the same packet rate."""

    def get_streams(self, direction=0, size=9018):
        """Return the streams; the small packets lie in the middle between two large ones."""
        return [
            STLStream(packet=self.packet("16.0.0.1", size), mode=STLTXCont(pps=1000)),
            STLStream(packet=self.packet("16.0.0.2", 64), mode=STLTXCont(pps=1000), isg=500.0),
        ]

    def packet(self, source, size):
        """Return a frame of this size."""
        headers = Ether() / IP(src=source, dst="48.0.0.1") / UDP(sport=1025, dport=12)
        return STLPktBuilder(pkt=headers / bytes(size - 4 - len(headers)))


def register():
    return JumboFrames()
