"""Datagrams in IPv4 fragments: each is sent in three pieces, in order or with the last piece first.

It tests what puts fragments together, or filters without doing so. The pieces are a chain of bursts that goes
round, so they stay together however fast they are sent.

Run it:  allosaur run fragments -t rounds=1000 -d 30 --local
See it:  allosaur sim fragments -o fragments.pcap
Tunables: rounds (how many datagrams), order (forward or backward).
"""

from allosaur import STLPktBuilder, STLStream, STLTXSingleBurst
from scapy.layers.inet import IP, UDP, fragment
from scapy.layers.l2 import Ether

FRAGMENT_BYTES = 1480


class Fragments:
    """A ring of streams, one for each piece."""

    def get_streams(self, direction=0, rounds=10, order="forward"):
        """Return the ring; its last stream counts the rounds."""
        datagram = IP(src="16.0.0.1", dst="48.0.0.1", id=7) / UDP(sport=1025, dport=12) / bytes(4000)
        pieces = fragment(datagram, fragsize=FRAGMENT_BYTES)
        if order == "backward":
            pieces.reverse()
        last = len(pieces) - 1
        return [
            STLStream(
                name=f"piece {number}",
                packet=STLPktBuilder(pkt=Ether() / piece),
                mode=STLTXSingleBurst(pps=10_000, total_pkts=1),
                isg=100.0,
                self_start=number == 0,
                next=f"piece {(number + 1) % len(pieces)}",
                action_count=rounds if number == last else 0,
            )
            for number, piece in enumerate(pieces)
        ]


def register():
    return Fragments()
