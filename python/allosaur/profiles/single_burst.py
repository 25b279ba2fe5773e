"""One burst of packets at a given rate, then silence: it ends by itself.

It tests exact numbers: so many packets were sent, so many must arrive. The simplest check of a link.

Run it:  allosaur run single_burst -t packets=5000 -d 30 --local
Tunables: packets (how many, 1 or more), rate_pps (packets per second).
"""

from allosaur import STLPktBuilder, STLStream, STLTXSingleBurst
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class SingleBurst:
    """One stream that ends."""

    def get_streams(self, direction=0, packets=1000, rate_pps=1000):
        """Return the stream."""
        frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12) / bytes(18)
        return [
            STLStream(
                packet=STLPktBuilder(pkt=frame), mode=STLTXSingleBurst(pps=rate_pps, total_pkts=packets)
            )
        ]


def register():
    return SingleBurst()
