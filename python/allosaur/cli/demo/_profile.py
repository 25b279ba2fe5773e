"""The demo's traffic: an IMIX of 64, 594 and 1518 bytes with a field engine, and a chain of bursts beside it.

Run it without the demo: allosaur run <this file> --local --ports 0,1 -d 10
Tunables: rate_pps (the IMIX of each port), isg_s (when the bursts begin).
"""

from __future__ import annotations

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont, STLTXMultiBurst, STLTXSingleBurst

MIX = ((64, 7), (594, 4), (1518, 1))
"""Frame sizes with FCS, and how many of each in twelve packets."""
BURST_FRAME_BYTES = 200
BURST_PACKETS = 1000
BURSTS = 5
"""The chain: one burst of BURST_PACKETS, then BURSTS shorter ones of as many in all, then one more."""
CHAIN_PACKETS = 3 * BURST_PACKETS


def packet(size: int, direction: int) -> STLPktBuilder:
    """Return a UDP frame of `size` bytes with FCS: the source address counts, the target port is random."""
    # Scapy takes a while to import: only a process that sends needs it.
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    first, last, server = ("16.0.0.1", "16.0.255.255", "48.0.0.1")
    if direction == 1:
        first, last, server = ("48.0.0.1", "48.0.255.255", "16.0.0.1")
    # A UDP checksum of zero means "none", and stays right whatever the field engine writes.
    headers = Ether() / IP(src=first, dst=server) / UDP(sport=1025, dport=12, chksum=0)
    vm = STLVM()
    vm.var(name="client", min_value=first, max_value=last, size=4, op="inc")
    vm.var(name="port", min_value=1024, max_value=65535, size=2, op="random")
    vm.write(fv_name="client", pkt_offset="IP.src")
    vm.write(fv_name="port", pkt_offset="UDP.dport")
    vm.fix_chksum()
    return STLPktBuilder(pkt=headers / bytes(size - 4 - len(headers)), vm=vm)


class Demo:
    """IMIX without end, and three streams of bursts, each begun by the one before."""

    def get_streams(
        self, direction: int = 0, rate_pps: float = 200_000, isg_s: float = 1.0
    ) -> list[STLStream]:
        """Return the streams of one direction."""
        share = rate_pps / sum(parts for _, parts in MIX)
        streams = [
            STLStream(packet=packet(size, direction), mode=STLTXCont(pps=share * parts), random_seed=size)
            for size, parts in MIX
        ]
        burst = packet(BURST_FRAME_BYTES, direction)
        single = STLTXSingleBurst(pps=10_000, total_pkts=BURST_PACKETS)
        several = STLTXMultiBurst(
            pps=10_000, pkts_per_burst=BURST_PACKETS // BURSTS, count=BURSTS, ibg=100_000.0
        )
        return [
            *streams,
            STLStream(name="first", packet=burst, mode=single, isg=isg_s * 1e6, next="several"),
            STLStream(name="several", packet=burst, mode=several, self_start=False, next="last"),
            STLStream(name="last", packet=burst, mode=single, self_start=False),
        ]


def register() -> Demo:
    """Return the profile, as the loader asks for it."""
    return Demo()
