"""MAC addresses of the packet's own, of the port, and both mixed: four streams with all that there is.

It tests a switch between hosts that are not the tester's ports. An address that the packet leaves open is the
port's; one that it says stays, unless the stream says otherwise.

Run it:  allosaur run own_macs -d 10 --local
See it:  allosaur sim own_macs -o macs.pcap --limit 4
"""

from allosaur import STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

ETHERNETS = (
    Ether(),
    Ether(src="02:00:00:00:00:0a"),
    Ether(dst="02:00:00:00:00:0b"),
    Ether(src="02:00:00:00:00:0a", dst="02:00:00:00:00:0b"),
)


class OwnMacs:
    """A stream of each kind; the source address says which."""

    def get_streams(self, direction=0):
        """Return the streams, a millisecond apart."""
        return [
            STLStream(
                packet=STLPktBuilder(
                    pkt=ethernet / IP(src=f"16.0.0.{number}", dst="48.0.0.1") / UDP() / bytes(18)
                ),
                mode=STLTXCont(pps=100),
                isg=1000.0 * number,
            )
            for number, ethernet in enumerate(ETHERNETS, start=1)
        ]


def register():
    return OwnMacs()
