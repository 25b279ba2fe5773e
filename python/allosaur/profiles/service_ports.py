"""A list of values: the destination port walks through well-known services.

It tests rules that look at ports: a firewall, a classifier, a load balancer. The list is the other way to
tell the field engine what to write, beside a range.

Run it:  allosaur run service_ports -m 100kpps -d 10 --local
See it:  allosaur sim service_ports -o ports.pcap --limit 14
"""

from allosaur import STLPktBuilder, STLScVmRaw, STLStream, STLTXCont, STLVmFlowVar, STLVmWrFlowVar
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

PORTS = [53, 67, 123, 161, 443, 500, 514]


class ServicePorts:
    """One stream; the program is written as a list of instructions."""

    def get_streams(self, direction=0):
        """Return the stream. The IPv4 checksum does not cover the ports, so nothing needs a fix."""
        program = STLScVmRaw(
            [
                STLVmFlowVar(name="service", value_list=PORTS, size=2, op="inc"),
                STLVmWrFlowVar(fv_name="service", pkt_offset="UDP.dport"),
            ]
        )
        frame = (
            Ether()
            / IP(src="16.0.0.1", dst="48.0.0.1")
            / UDP(sport=1025, dport=PORTS[0], chksum=0)
            / bytes(18)
        )
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=program), mode=STLTXCont(pps=1000))]


def register():
    return ServicePorts()
