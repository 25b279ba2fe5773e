"""A chain of bursts: ten packets, then five bursts of four, each part begun by the one before it.

It tests what a device does with bursts after silence: queues that fill and empty again. It ends by itself
after thirty packets.

Run it:  allosaur run burst_chain -d 30 --local
See it:  allosaur sim burst_chain -o chain.pcap
"""

from allosaur import STLPktBuilder, STLStream, STLTXMultiBurst, STLTXSingleBurst
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class BurstChain:
    """Two streams; only the first begins by itself."""

    def get_streams(self, direction=0):
        """Return the chain; `ibg` is the silence between two bursts, in microseconds."""
        return [
            STLStream(
                name="opening",
                packet=self.packet("16.0.0.1"),
                mode=STLTXSingleBurst(pps=100, total_pkts=10),
                next="bursts",
            ),
            STLStream(
                name="bursts",
                packet=self.packet("16.0.0.2"),
                mode=STLTXMultiBurst(pps=1000, pkts_per_burst=4, count=5, ibg=250_000.0),
                self_start=False,
            ),
        ]

    def packet(self, source):
        """Return a 64-byte frame from this address."""
        return STLPktBuilder(
            pkt=Ether() / IP(src=source, dst="48.0.0.1") / UDP(sport=1025, dport=12) / bytes(18)
        )


def register():
    return BurstChain()
