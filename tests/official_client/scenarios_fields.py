"""Scenarios of the field engine: every instruction, and the bytes of the packets that arrive."""

# ruff: noqa: I001  # the order of imports matters here
import base64

from steps import WAIT_SECONDS, packet
from trex.stl.api import (
    IP,
    UDP,
    CTRexVmInsFixHwCs,
    Ether,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXSingleBurst,
    STLVmFixChecksumHw,
    STLVmFixIcmpv6,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmFlowVarRepeatableRandom,
    STLVmTrimPktSize,
    STLVmTupleGen,
    STLVmWrFlowVar,
    STLVmWrMaskFlowVar,
)
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6

HARDWARE = STLVmFixChecksumHw(l3_offset="IP", l4_offset="UDP", l4_type=CTRexVmInsFixHwCs.L4_TYPE_UDP)
PACKETS = 12


def source_port(variable):
    """A program that writes one variable of two bytes to the source port."""
    return [variable, STLVmWrFlowVar(fv_name="v", pkt_offset="UDP.sport"), HARDWARE]


PROGRAMS = {
    "inc": source_port(
        STLVmFlowVar("v", min_value=1000, max_value=1010, init_value=1008, size=2, step=2, op="inc")
    ),
    "dec": source_port(STLVmFlowVar("v", min_value=1000, max_value=1003, init_value=1001, size=2, op="dec")),
    "random": source_port(STLVmFlowVar("v", min_value=1000, max_value=1003, size=2, op="random")),
    "value_list": source_port(STLVmFlowVar("v", value_list=[5, 9, 7], size=2, op="inc")),
    "rand_limit": source_port(
        STLVmFlowVarRepeatableRandom("v", size=2, limit=3, seed=7, min_value=1000, max_value=60000)
    ),
    "next_var": [
        STLVmFlowVar("v", min_value=1, max_value=3, size=2, op="inc", next_var="w"),
        STLVmFlowVar("w", min_value=100, max_value=101, size=2, op="inc"),
        STLVmWrFlowVar(fv_name="v", pkt_offset="UDP.sport"),
        STLVmWrFlowVar(fv_name="w", pkt_offset="UDP.dport"),
        HARDWARE,
    ],
    "write": [
        STLVmFlowVar("v", min_value="16.0.0.1", max_value="16.0.0.5", size=4, op="inc"),
        STLVmWrFlowVar(fv_name="v", pkt_offset="IP.src", add_val=10),
        STLVmWrFlowVar(fv_name="v", pkt_offset="IP.dst", is_big=False),
        STLVmFixIpv4(offset="IP"),
    ],
    "write_mask": [
        STLVmFlowVar("v", min_value=0, max_value=15, size=1, op="inc"),
        STLVmWrMaskFlowVar(fv_name="v", pkt_offset="UDP.sport", pkt_cast_size=2, mask=0x0F00, shift=8),
        HARDWARE,
    ],
    "write_mask_wide": [
        STLVmFlowVar("v", min_value=1001 << 32 | 7, max_value=1003 << 32 | 7, size=8, op="inc", step=1 << 32),
        STLVmWrMaskFlowVar(fv_name="v", pkt_offset="UDP.sport", pkt_cast_size=2, mask=0xFFFF),
        HARDWARE,
    ],
    "tuple": [
        STLVmTupleGen("v", ip_min="16.0.0.1", ip_max="16.0.0.2", port_min=2000, port_max=2002, limit_flows=6),
        STLVmWrFlowVar(fv_name="v.ip", pkt_offset="IP.src"),
        STLVmWrFlowVar(fv_name="v.port", pkt_offset="UDP.sport"),
        HARDWARE,
    ],
    "trim": [STLVmFlowVar("v", min_value=64, max_value=68, size=2, step=2, op="inc"), STLVmTrimPktSize("v")],
}
"""What the server shall do to each packet, by the instruction that is tried."""


def icmpv6():
    """Echo requests over IPv6 whose number counts, and whose checksum must follow."""
    request = Ether() / IPv6(src="2001:db8::1", dst="2001:db8::2") / ICMPv6EchoRequest(data=b"x" * 8)
    program = [
        STLVmFlowVar("v", min_value=1, max_value=4, size=2, op="inc"),
        STLVmWrFlowVar(fv_name="v", pkt_offset="ICMPv6EchoRequest.seq"),
        STLVmFixIcmpv6(l3_offset="IPv6", l4_offset=ICMPv6EchoRequest().name),
    ]
    return STLPktBuilder(pkt=request, vm=STLScVmRaw(program))


def arrivals(client, builder):
    """The packets of one burst as they were captured on the other port, in base64."""
    client.reset(ports=[0])
    client.add_streams(
        STLStream(packet=builder, mode=STLTXSingleBurst(total_pkts=PACKETS, pps=1000)), ports=[0]
    )
    captured = []
    capture = client.start_capture(rx_ports=[1], limit=100)["id"]
    client.start(ports=[0], mult="1")
    client.wait_on_traffic(ports=[0], timeout=WAIT_SECONDS)
    client.stop_capture(capture, output=captured)
    return [base64.b64encode(one["binary"]).decode() for one in captured]


def instructions(connect):
    """Each instruction in a burst of its own."""
    client = connect("itay")
    client.reset(ports=[0, 1])
    client.set_service_mode(ports=[1])
    builders = {name: packet(96, STLScVmRaw(program)) for name, program in PROGRAMS.items()}
    builders["icmpv6"] = icmpv6()
    # TRex's cache is made of the first packets; the others repeat them.
    cached = STLVmFlowVar("v", min_value=1000, max_value=2000, size=2, op="inc")
    builders["cache"] = packet(96, STLScVmRaw(source_port(cached), cache_size=4))
    builders["constant"] = STLPktBuilder(
        pkt=Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP() / (b"y" * 20)
    )
    return {name: arrivals(client, builder) for name, builder in builders.items()}


SCENARIOS = (instructions,)
