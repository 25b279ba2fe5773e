"""Clients with ports: every address opens one connection after the other, each from a port of its own.

It tests NAT, firewalls and load balancers, which keep a record for each pair of address and port. First all
clients use their first port, then all use their second, and so on.

Run it:  allosaur run client_ports -t clients=50,ports=1000 -m 100kpps -d 10 --local
Tunables: clients (addresses, 1 to 65535), ports (of each client, 1 to 60000).
"""

from ipaddress import IPv4Address

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

FIRST_CLIENT, FIRST_PORT = IPv4Address("16.0.0.1"), 1025


class ClientPorts:
    """One stream; the tuple gives the variables flow.ip and flow.port."""

    def get_streams(self, direction=0, clients=10, ports=100):
        """Return the stream."""
        vm = STLVM()
        last_client = str(FIRST_CLIENT + (clients - 1))
        vm.tuple_var("flow", str(FIRST_CLIENT), last_client, FIRST_PORT, FIRST_PORT + ports - 1)
        vm.write(fv_name="flow.ip", pkt_offset="IP.src")
        vm.write(fv_name="flow.port", pkt_offset="UDP.sport")
        vm.fix_chksum()
        frame = Ether() / IP(src=str(FIRST_CLIENT), dst="48.0.0.1") / UDP(dport=12, chksum=0) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return ClientPorts()
