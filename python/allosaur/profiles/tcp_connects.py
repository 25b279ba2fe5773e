"""Connection requests with correct checksums: what a real client's first packet looks like.

It tests servers and firewalls that check TCP checksums before they keep a record. Addresses and ports are
those of clients that open one connection after the other. Use it on your own lab only.

The simulator writes the checksums as a port's hardware gets them, before it completes them.

Run it:  allosaur run tcp_connects -t clients=200 -m 100kpps -d 10 --local
Tunables: clients (addresses, 1 to 65535).
"""

from ipaddress import IPv4Address

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont, STLVmFixChecksumHw
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

FIRST_CLIENT = IPv4Address("16.0.0.1")


class TcpConnects:
    """One stream; the port's hardware computes the checksums where it can, the server where not."""

    def get_streams(self, direction=0, clients=100):
        """Return the stream."""
        vm = STLVM()
        last_client = str(FIRST_CLIENT + (clients - 1))
        vm.tuple_var("client", str(FIRST_CLIENT), last_client, 1025, 65535)
        vm.write(fv_name="client.ip", pkt_offset="IP.src")
        vm.write(fv_name="client.port", pkt_offset="TCP.sport")
        vm.fix_chksum_hw(l3_offset="IP", l4_offset="TCP", l4_type=STLVmFixChecksumHw.L4_TYPE_TCP)
        frame = Ether() / IP(src=str(FIRST_CLIENT), dst="48.0.0.1") / TCP(dport=80, flags="S")
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return TcpConnects()
