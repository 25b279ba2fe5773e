"""Three bursts in a ring: the last begins the first again, a given number of times.

It tests patterns that repeat: requests, answers and acknowledgements of different sizes, for example. Only
the stream that closes the ring counts the rounds.

Run it:  allosaur run burst_loop -t rounds=20 -d 60 --local
See it:  allosaur sim burst_loop -o loop.pcap
Tunables: rounds (how often the ring is run, 1 or more).
"""

from allosaur import STLPktBuilder, STLStream, STLTXSingleBurst
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

STEPS = (("request", 64, 1, "answer"), ("answer", 1518, 10, "thanks"), ("thanks", 64, 5, "request"))
"""Name, frame size with FCS, packets, and what comes next."""


class BurstLoop:
    """A ring of three streams."""

    def get_streams(self, direction=0, rounds=3):
        """Return the ring."""
        return [
            STLStream(
                name=name,
                packet=self.packet(size),
                mode=STLTXSingleBurst(pps=10_000, total_pkts=packets),
                isg=1000.0,
                next=after,
                self_start=name == "request",
                action_count=rounds if after == "request" else 0,
            )
            for name, size, packets, after in STEPS
        ]

    def packet(self, size):
        """Return a frame of this size."""
        headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12)
        return STLPktBuilder(pkt=headers / bytes(size - 4 - len(headers)))


def register():
    return BurstLoop()
