"""Bursts that grow: ten packets, twenty, forty and so on, each at the line rate and begun by the last.

It tests how long a burst the queues of a device can take: the first burst that loses packets says so. The
bursts have different source addresses, so a capture tells them apart.

Run it:  allosaur run growing_bursts -t steps=8 -d 30 --local
Tunables: steps (how many bursts, 1 to 16), first (packets of the first), pause_us (silence between two).
"""

from allosaur import STLPktBuilder, STLStream, STLTXSingleBurst
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class GrowingBursts:
    """A chain of bursts."""

    def get_streams(self, direction=0, steps=5, first=10, pause_us=10_000):
        """Return the chain."""
        return [
            STLStream(
                name=f"burst {step}",
                packet=self.packet(step),
                mode=STLTXSingleBurst(percentage=100, total_pkts=first << step),
                self_start=step == 0,
                isg=float(pause_us),
                next=f"burst {step + 1}" if step + 1 < steps else None,
            )
            for step in range(steps)
        ]

    def packet(self, step):
        """Return a 64-byte frame from an address of its own."""
        return STLPktBuilder(pkt=Ether() / IP(src=f"16.0.0.{step + 1}", dst="48.0.0.1") / UDP() / bytes(18))


def register():
    return GrowingBursts()
