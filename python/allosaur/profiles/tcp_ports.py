"""TCP packets of many flows whose checksums stay right although nothing computes them.

It tests a stateless filter or a load balancer with TCP. The source port counts up while the destination port
counts down, so their sum, and with it the TCP checksum, stays the same.

Run it:  allosaur run tcp_ports -m 100kpps -d 10 --local
Tunables: flows (1 to 60000), flags (of TCP, as letters: S, SA, A, PA, F, R).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

FIRST_CLIENT_PORT, FIRST_SERVER_PORT = 1025, 80


class TcpPorts:
    """One stream of many flows."""

    def get_streams(self, direction=0, flows=1000, flags="A"):
        """Return the stream. The packet begins as the program does, so that its checksum fits."""
        vm = STLVM()
        ports = (("client", FIRST_CLIENT_PORT, "inc"), ("server", FIRST_SERVER_PORT, "dec"))
        for name, first, order in ports:
            vm.var(name=name, min_value=first, max_value=first + flows - 1, size=2, op=order)
        vm.write(fv_name="client", pkt_offset="TCP.sport")
        vm.write(fv_name="server", pkt_offset="TCP.dport")
        segment = TCP(sport=FIRST_CLIENT_PORT, dport=FIRST_SERVER_PORT + flows - 1, flags=flags, seq=1)
        frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / segment / bytes(6)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return TcpPorts()
