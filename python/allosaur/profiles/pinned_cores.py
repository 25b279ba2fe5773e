"""Streams that are sent by one core each, instead of by all of them together.

It tests whether a device treats packets of one flow that leave from one queue of a card otherwise than
those that leave from many. A stream with core_id is sent by that core alone, whatever else runs; chained
streams must all have the same one. Start the server with at least as many cores: --cores 2.

Run it:  allosaur run pinned_cores -m 100kpps -d 10 --local --cores 2 -t cores=2
Tunables: cores (how many of the server's cores get a stream, 1 to 8).
"""

from allosaur import STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class PinnedCores:
    """A stream for each core."""

    def get_streams(self, direction=0, cores=1):
        """Return the streams; the UDP source port says which core sent a packet."""
        streams = []
        for core in range(cores):
            headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1000 + core, dport=12)
            packet = STLPktBuilder(pkt=headers / bytes(18))
            streams.append(STLStream(packet=packet, mode=STLTXCont(pps=1000), core_id=core))
        return streams


def register():
    return PinnedCores()
