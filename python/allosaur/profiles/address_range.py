"""A field engine: the source address counts up through a range, the destination counts down.

It tests a device with many flows instead of one. Every packet has a correct IPv4 checksum. The UDP checksum
is zero, which means "none" and so stays right.

Run it:  allosaur run address_range -m 100kpps -d 10 --local
See it:  allosaur sim address_range -o range.pcap --limit 600
Tunables: clients (how many source addresses, 1 to 65535).
"""

from ipaddress import IPv4Address

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

FIRST_CLIENT = IPv4Address("16.0.0.1")


class AddressRange:
    """One stream of many flows."""

    def get_streams(self, direction=0, clients=254):
        """Return the stream with its field engine program."""
        vm = STLVM()
        last_client = str(FIRST_CLIENT + (clients - 1))
        vm.var(name="src", min_value=str(FIRST_CLIENT), max_value=last_client, size=4, op="inc")
        vm.var(name="dst", min_value="48.0.0.1", max_value="48.0.0.254", size=4, op="dec")
        vm.write(fv_name="src", pkt_offset="IP.src")
        vm.write(fv_name="dst", pkt_offset="IP.dst")
        vm.fix_chksum()
        frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12, chksum=0) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return AddressRange()
