"""Three services with a bandwidth each, said in the three ways there are: packets, frames, the wire.

It tests shaping and policing: a device that limits each service must pass what is below its limit and cut
what is above. Rates with "L1" count preamble and gap between frames, rates with "L2" the frames with FCS.

Run it:  allosaur run bandwidth_shares -m 10 -d 10 --local
"""

from allosaur import STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

SERVICES = (
    (5060, 218, STLTXCont(pps=50)),
    (554, 1400, STLTXCont(bps_L2=4_000_000)),
    (80, 1518, STLTXCont(bps_L1=2_000_000)),
)
"""UDP port, frame size with FCS, and rate: a call of 50 packets a second, a film, a download."""


class BandwidthShares:
    """A stream of each service."""

    def get_streams(self, direction=0):
        """Return the streams."""
        return [
            STLStream(packet=STLPktBuilder(pkt=self.frame(port, size)), mode=mode)
            for port, size, mode in SERVICES
        ]

    def frame(self, port, size):
        """Return a frame of this size."""
        headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=port)
        return headers / bytes(size - 4 - len(headers))


def register():
    return BandwidthShares()
