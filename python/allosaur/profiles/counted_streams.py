"""Streams that are counted one by one: what was sent and received of each, under a number of its own.

It tests which of several flows a device loses. In Python: client.get_pgid_stats() after the run; the number
of a stream is its UDP destination port here.

Run it:  allosaur run counted_streams -t count=5 -m 100kpps -d 10 --local
Tunables: count (how many streams, 1 to 1000), first (the number of the first).
"""

from allosaur import STLFlowStats, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class CountedStreams:
    """Streams with a statistics rule each."""

    def get_streams(self, direction=0, count=3, first=5000):
        """Return the streams."""
        streams = []
        for number in range(first, first + count):
            addresses = IP(src="16.0.0.1", dst="48.0.0.1")
            frame = Ether() / addresses / UDP(sport=1025, dport=number, chksum=0) / bytes(18)
            counted = STLFlowStats(pg_id=number)
            streams.append(
                STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(pps=1000), flow_stats=counted)
            )
        return streams


def register():
    return CountedStreams()
