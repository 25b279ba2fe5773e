"""Gratuitous ARP: many hosts announce their addresses, each once, and the profile ends.

It tests the ARP table of a router, and makes a network know the clients of a profile before its traffic
starts. Address and MAC count together.

Run it:  allosaur run gratuitous_arp -t hosts=1000 -d 30 --local
Tunables: hosts (1 to 65535), rate_pps (announcements per second).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXSingleBurst
from scapy.layers.l2 import ARP, Ether

FIRST_MAC, FIRST_ADDRESS = "02:00:00:00:00:00", "16.0.0.0"


class GratuitousArp:
    """One burst, as long as there are hosts."""

    def get_streams(self, direction=0, hosts=254, rate_pps=1000):
        """Return the stream: the last two bytes of each address are the host's number."""
        vm = STLVM()
        vm.var(name="host", min_value=1, max_value=hosts, size=2, op="inc")
        for place, fixup in (("Ether.src", 4), ("ARP.hwsrc", 4), ("ARP.psrc", 2), ("ARP.pdst", 2)):
            vm.write(fv_name="host", pkt_offset=place, offset_fixup=fixup)
        announcement = ARP(op="is-at", hwsrc=FIRST_MAC, psrc=FIRST_ADDRESS, pdst=FIRST_ADDRESS)
        frame = Ether(src=FIRST_MAC, dst="ff:ff:ff:ff:ff:ff") / announcement
        mode = STLTXSingleBurst(pps=rate_pps, total_pkts=hosts)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=mode)]


def register():
    return GratuitousArp()
