"""Dependent variables: addresses count like the digits of an odometer, host by host and net by net.

It tests a device with every host of every net once, in order. A variable with `next_var` moves the one that
it names when it begins again; here the nets are a list of values.

Run it:  allosaur run odometer -t hosts=50 -m 100kpps -d 10 --local
See it:  allosaur sim odometer -o odometer.pcap --limit 30
Tunables: hosts (in each net, 1 to 254).
"""

from allosaur import (
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

NETS = [0, 17, 64, 200]
"""Values of the third byte of the address."""


class Odometer:
    """One stream; the program is written as a list of instructions."""

    def get_streams(self, direction=0, hosts=10):
        """Return the stream."""
        program = STLScVmRaw(
            [
                STLVmFlowVar("host", min_value=1, max_value=hosts, size=1, next_var="net"),
                STLVmFlowVar("net", value_list=NETS, size=1),
                STLVmWrFlowVar("net", "IP.src", offset_fixup=2),
                STLVmWrFlowVar("host", "IP.src", offset_fixup=3),
                STLVmFixIpv4("IP"),
            ]
        )
        frame = Ether() / IP(src="16.0.0.0", dst="48.0.0.1") / UDP(sport=1025, dport=12, chksum=0) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=program), mode=STLTXCont(pps=1000))]


def register():
    return Odometer()
