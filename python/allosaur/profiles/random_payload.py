"""Payload that compresses badly: eight random bytes at the start of each payload, the rest is noise.

It tests devices that compress or look for patterns: no two packets are alike. The same seed gives the same
packets in every run.

Run it:  allosaur run random_payload -m 100kpps -d 10 --local
Tunables: size (frame size in bytes with FCS, 64 to 1518), seed (1 or more).
"""

import random

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

PAYLOAD_OFFSET = 14 + 20 + 8


class RandomPayload:
    """One stream."""

    def get_streams(self, direction=0, size=512, seed=1):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="noise", min_value=0, max_value=2**64 - 1, size=8, op="random")
        vm.write(fv_name="noise", pkt_offset=PAYLOAD_OFFSET)
        headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12, chksum=0)
        frame = headers / random.Random(seed).randbytes(size - 4 - len(headers))
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000), random_seed=seed)]


def register():
    return RandomPayload()
