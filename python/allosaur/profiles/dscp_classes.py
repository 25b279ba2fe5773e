"""Traffic classes: packets with the usual DSCP marks, as many of each.

It tests quality of service: when the link is overloaded, the higher classes must come through. Each class
has a UDP port of its own, so that what arrives can be counted by class.

Run it:  allosaur run dscp_classes -m 100kpps -d 10 --local
See it:  allosaur sim dscp_classes -o classes.pcap --limit 7
"""

from allosaur import STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

CLASSES = {"best effort": 0, "CS1": 8, "AF11": 10, "AF21": 18, "AF31": 26, "AF41": 34, "EF": 46}
"""Name and code point; it is the upper six bits of the byte that IPv4 calls "type of service"."""
FIRST_PORT = 5000


class DscpClasses:
    """A stream of each class."""

    def get_streams(self, direction=0):
        """Return the streams."""
        return [
            STLStream(
                name=name,
                packet=STLPktBuilder(
                    pkt=Ether()
                    / IP(src="16.0.0.1", dst="48.0.0.1", tos=code << 2)
                    / UDP(sport=1025, dport=FIRST_PORT + code)
                    / bytes(200)
                ),
                mode=STLTXCont(pps=1000),
            )
            for name, code in CLASSES.items()
        ]


def register():
    return DscpClasses()
