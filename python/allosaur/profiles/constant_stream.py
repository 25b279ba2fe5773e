"""One UDP stream at a constant rate: the simplest test there is.

It tests how fast a device forwards packets of one size that are all the same. What must hold: all that was
sent is received, and nothing is missed.

Run it:  allosaur run constant_stream -m 100kpps -d 10 --local
Tunables: size (frame size in bytes with FCS, 64 to 9238).
"""

from allosaur import STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

HEADERS_AND_FCS = 14 + 20 + 8 + 4


class ConstantStream:
    """One continuous stream."""

    def get_streams(self, direction=0, size=64):
        """Return the streams of one direction; port 1 answers port 0's addresses."""
        client, server = ("16.0.0.1", "48.0.0.1") if direction == 0 else ("48.0.0.1", "16.0.0.1")
        frame = (
            Ether() / IP(src=client, dst=server) / UDP(sport=1025, dport=12) / bytes(size - HEADERS_AND_FCS)
        )
        return [STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(pps=1000))]


def register():
    return ConstantStream()
