"""GTP-U: the traffic of mobile users, each in a tunnel of its own to the core network.

It tests the user plane of a mobile network. The tunnel identifier and the user's address count together, so
each user has one tunnel.

Run it:  allosaur run gtpu -t users=1000 -m 100kpps -d 10 --local
Tunables: users (1 to 65535).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.contrib.gtp import GTP_U_Header
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

GTPU_PORT = 2152


class Gtpu:
    """One stream of many users."""

    def get_streams(self, direction=0, users=100):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="user", min_value=1, max_value=users, size=2, op="inc")
        # The identifier has four bytes; the lower two change.
        vm.write(fv_name="user", pkt_offset="GTP_U_Header.teid", offset_fixup=2)
        vm.write(fv_name="user", pkt_offset="IP:1.src", offset_fixup=2)
        vm.fix_chksum(offset="IP:1")
        inner = IP(src="10.45.0.0", dst="48.0.0.1") / UDP(sport=1025, dport=443, chksum=0) / bytes(64)
        tunnel = IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=GTPU_PORT, dport=GTPU_PORT, chksum=0)
        frame = Ether() / tunnel / GTP_U_Header(teid=0, gtp_type=255) / inner
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return Gtpu()
