"""A packet from a capture: the first one of a file that lies beside the profile, sent at a constant rate.

It tests a device with exactly the bytes that were once seen on a wire.

Run it:  allosaur run capture_packet -m 10kpps -d 10 --local
"""

from allosaur import STLPktBuilder, STLStream, STLTXCont


class CapturePacket:
    """One stream."""

    def get_streams(self, direction=0):
        """Return the stream; the path begins where this file is."""
        packet = STLPktBuilder(pkt="captures/dns.pcap", path_relative_to_profile=True)
        return [STLStream(packet=packet, mode=STLTXCont(pps=100))]


def register():
    return CapturePacket()
