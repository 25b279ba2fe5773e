"""Many streams: each has a packet, a rate and a start of its own.

It tests the tester: thousands of streams on one port, each with its exact rate. It also is a pattern for
traffic that a field engine cannot describe.

Run it:  allosaur run many_streams -t count=5000 -d 10 --local
Tunables: count (how many, 1 to 20000), rate_pps (of each stream).
"""

from ipaddress import IPv4Address

from allosaur import STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

FIRST_CLIENT = IPv4Address("16.0.0.1")


class ManyStreams:
    """As many streams as there are clients."""

    def get_streams(self, direction=0, count=200, rate_pps=10):
        """Return the streams; their starts are spread over one gap, so that they do not come in bursts."""
        gap_us = 1e6 / rate_pps
        return [
            STLStream(
                packet=self.packet(str(FIRST_CLIENT + number)),
                mode=STLTXCont(pps=rate_pps),
                isg=gap_us * number / count,
            )
            for number in range(count)
        ]

    def packet(self, client):
        """Return a 64-byte frame from this client."""
        return STLPktBuilder(pkt=Ether() / IP(src=client, dst="48.0.0.1") / UDP() / bytes(18))


def register():
    return ManyStreams()
