"""Latency beside load: a background stream at a high rate, and a few packets whose way is timed.

It tests how long packets take through a device while it works, and whether it drops, doubles or reorders
them. `allosaur run` shows the times; in Python, client.get_stats()["latency"][7] has them, in microseconds,
and the errors. The rate of timed streams is their own: a multiplier changes only the background.

Run it:  allosaur run latency_streams -m 200kpps -d 10 --local
Tunables: pg_id (the number of the timed stream, 7), pps (its packets a second), size (frame size with FCS).
"""

from allosaur import STLFlowLatencyStats, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

HEADERS_AND_FCS = 14 + 20 + 8 + 4


class LatencyStreams:
    """A background, and one stream of which each packet is timed."""

    def get_streams(self, direction=0, pg_id=7, pps=1000, size=128):
        """Return the streams; each direction has a number of its own, as no two ports may share one."""
        headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1")
        payload = bytes(size - HEADERS_AND_FCS)
        background = STLPktBuilder(pkt=headers / UDP(sport=1025, dport=12, chksum=0) / payload)
        timed = STLPktBuilder(pkt=headers / UDP(sport=1025, dport=13, chksum=0) / payload)
        return [
            STLStream(packet=background, mode=STLTXCont(pps=100_000)),
            STLStream(
                packet=timed, mode=STLTXCont(pps=pps), flow_stats=STLFlowLatencyStats(pg_id=pg_id + direction)
            ),
        ]


def register():
    return LatencyStreams()
