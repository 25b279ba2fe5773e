"""Traffic in both directions: port 0 is the client's side, port 1 the server's, each the other's mirror.

It tests a device that forwards both ways at once. Every packet that goes one way has its answer the other.

Run it:  allosaur run two_directions -m 100kpps -d 10 --ports 0,1 --local
Tunables: size (frame size in bytes with FCS, 64 to 9238), clients (how many addresses).
"""

from allosaur import STLVM, STLPktBuilder, STLStream, STLTXCont
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


class TwoDirections:
    """One stream a direction; the client's address is the source in one, the destination in the other."""

    def get_streams(self, direction=0, size=64, clients=100):
        """Return the stream of one direction."""
        vm = STLVM()
        vm.var(name="client", min_value=1, max_value=clients, size=2, op="inc")
        vm.write(fv_name="client", pkt_offset="IP.src" if direction == 0 else "IP.dst", offset_fixup=2)
        vm.fix_chksum()
        client, server = ("16.0.0.0", 1025), ("48.0.0.1", 12)
        source, target = (client, server) if direction == 0 else (server, client)
        headers = Ether() / IP(src=source[0], dst=target[0]) / UDP(sport=source[1], dport=target[1], chksum=0)
        frame = headers / bytes(size - 4 - len(headers))
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]


def register():
    return TwoDirections()
