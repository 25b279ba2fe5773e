"""Three constant streams of 10, 20 and 40 packets per second that begin one after the other.

It tests that streams share a port: each keeps its own rate and its own start. With a multiplier all three
grow alike: -m 7kpps gives 1, 2 and 4 kpps.

Run it:  allosaur run three_streams -m 7kpps -d 10 --local
See it:  allosaur sim three_streams -o three.pcap -d 1
"""

from allosaur import STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

RATES_PPS = (10, 20, 40)


class ThreeStreams:
    """Streams that differ in the source address, so that a capture tells them apart."""

    def get_streams(self, direction=0):
        """Return the streams; `isg` is the wait before the first packet, in microseconds."""
        streams = []
        for number, rate in enumerate(RATES_PPS, start=1):
            frame = (
                Ether() / IP(src=f"16.0.0.{number}", dst="48.0.0.1") / UDP(sport=1025, dport=12) / bytes(18)
            )
            streams.append(
                STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(pps=rate), isg=100.0 * number)
            )
        return streams


def register():
    return ThreeStreams()
