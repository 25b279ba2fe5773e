"""A stream that sends nothing: bursts with silences between them that grow.

It tests timeouts: after which silence does a device forget a flow? The first packet of a burst that is
treated as new says so. A dummy stream takes its time in a chain and sends no packet.

Run it:  allosaur run silence_in_a_chain -t first_ms=1000 -d 60 --local
Tunables: steps (how many silences), first_ms (the first one; each is twice the one before).
"""

from allosaur import STLPktBuilder, STLStream, STLTXSingleBurst
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class SilenceInAChain:
    """Burst, silence, burst, silence, ..., burst."""

    def get_streams(self, direction=0, steps=3, first_ms=10):
        """Return the chain."""
        frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12) / bytes(18)
        burst = {"packet": STLPktBuilder(pkt=frame), "mode": STLTXSingleBurst(pps=1000, total_pkts=5)}
        streams = []
        for step in range(steps):
            names = {"name": f"burst {step}", "next": f"silence {step}"}
            streams.append(STLStream(**burst, **names, self_start=step == 0))
            names = {"name": f"silence {step}", "next": f"burst {step + 1}"}
            once = STLTXSingleBurst(pps=1000, total_pkts=1)
            silence_us = 1000.0 * (first_ms << step)
            streams.append(STLStream(**names, mode=once, isg=silence_us, dummy_stream=True, self_start=False))
        streams.append(STLStream(**burst, name=f"burst {steps}", self_start=steps == 0))
        return streams


def register():
    return SilenceInAChain()
