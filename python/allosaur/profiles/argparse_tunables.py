"""Tunables in the style of a command line, read with argparse: for profiles with many of them.

It tests nothing new: one constant stream. It shows how a profile takes tunables as words, which it can check
and explain by itself.

Run it:  allosaur run argparse_tunables -t size=512,rate=2000 -d 10 --local
Tunables: size (frame size in bytes with FCS, 64 to 9238), rate (packets per second).
"""

import argparse

from allosaur import STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class ArgparseTunables:
    """One stream; the parameter `tunables` is a list of words."""

    def get_streams(self, direction, tunables, **kwargs):
        """Return the stream."""
        parser = argparse.ArgumentParser(description="One constant stream")
        parser.add_argument("--size", type=int, default=64, help="frame size in bytes with FCS")
        parser.add_argument("--rate", type=float, default=1000, help="packets per second")
        options = parser.parse_args(tunables)
        headers = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12)
        frame = headers / bytes(options.size - 4 - len(headers))
        return [STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(pps=options.rate))]


def register():
    return ArgparseTunables()
