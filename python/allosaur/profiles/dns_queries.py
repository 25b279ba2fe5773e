"""DNS queries: the transaction number counts, and the clients are random.

It tests a resolver, or what protects it. The same seed gives the same clients in every run.

Run it:  allosaur run dns_queries -t name=www.example.org -m 10kpps -d 10 --local
Tunables: name (what is asked for), seed (1 or more).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.dns import DNS, DNSQR
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class DnsQueries:
    """One stream of queries."""

    def get_streams(self, direction=0, name="www.example.com", seed=1):
        """Return the stream."""
        vm = STLVM()
        vm.var(name="query", min_value=0, max_value=65535, size=2, op="inc")
        vm.var(name="client", min_value="16.0.0.1", max_value="16.0.255.254", size=4, op="random")
        vm.write(fv_name="query", pkt_offset="DNS.id")
        vm.write(fv_name="client", pkt_offset="IP.src")
        vm.fix_chksum()
        query = DNS(id=0, rd=1, qd=DNSQR(qname=name))
        frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.53") / UDP(sport=1025, dport=53, chksum=0) / query
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000), random_seed=seed)]


def register():
    return DnsQueries()
