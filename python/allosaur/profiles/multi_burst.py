"""Bursts at a high rate with silence between them: short overload, long calm.

It tests how deep the queues of a device are: raise `burst` until packets are lost.

Run it:  allosaur run multi_burst -t burst=500 -d 30 --local
Tunables: burst (packets in a burst), count (how many bursts), gap_us (microseconds between them), rate_pps
(the rate inside a burst).
"""

from allosaur import STLPktBuilder, STLStream, STLTXMultiBurst
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class MultiBurst:
    """One stream of bursts."""

    def get_streams(self, direction=0, burst=100, count=10, gap_us=100_000, rate_pps=100_000):
        """Return the stream; it sends burst * count packets and ends."""
        frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12) / bytes(18)
        mode = STLTXMultiBurst(pps=rate_pps, pkts_per_burst=burst, count=count, ibg=float(gap_us))
        return [STLStream(packet=STLPktBuilder(pkt=frame), mode=mode)]


def register():
    return MultiBurst()
