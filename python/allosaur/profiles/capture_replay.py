"""A capture, packet by packet with its own gaps: each direction of the talk from its own port.

It tests a device with a real flow, over and over again. For a capture without anything around it,
no profile is needed: allosaur run my.pcap.

Run it:  allosaur run capture_replay -t rounds=100 -d 30 --ports 0,1 --local
Tunables: rounds (how often, 0 is forever), speedup (how much faster than recorded).
"""

from pathlib import Path

from allosaur import STLProfile

CAPTURE = Path(__file__).parent / "captures" / "dns.pcap"


class CaptureReplay:
    """A stream for each packet; each starts the next."""

    def get_streams(self, direction=0, rounds=3, speedup=1.0):
        """Return the streams of one side: the client's for direction 0, the server's for 1."""
        sides = STLProfile.load_pcap(CAPTURE, loop_count=rounds, speedup=speedup, split_mode="IP")
        return sides[direction].get_streams()


def register():
    return CaptureReplay()
