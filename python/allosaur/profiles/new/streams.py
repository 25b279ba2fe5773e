"""UDP packets of one size from many clients to one server: a profile to begin with.

Run it:  allosaur run NAME.py -m 10kpps -d 10 --ports 0,1 --local
Tunables: size (frame size in bytes with FCS), clients (source addresses), rate_pps (packets a second at
multiplier 1).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class Profile:
    """One stream in each direction."""

    def get_streams(self, direction=0, size=64, clients=100, rate_pps=1000):
        """Return the streams of one direction: even ports send direction 0, odd ports direction 1."""
        source, target = ("16.0.0.1", "48.0.0.1") if direction == 0 else ("48.0.0.1", "16.0.0.1")
        headers = Ether() / IP(src=source, dst=target) / UDP(sport=1025, dport=12)
        frame = headers / bytes(size - 4 - len(headers))

        # What changes from packet to packet: the last two bytes of the source address count up.
        vm = STLVM()
        vm.var(name="client", min_value=1, max_value=clients, size=2, op="inc")
        vm.write(fv_name="client", pkt_offset="IP.src", offset_fixup=2)
        vm.fix_chksum()
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=rate_pps))]


def register():
    """Return the profile; `allosaur run` asks it for its streams."""
    return Profile()
