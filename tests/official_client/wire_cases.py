"""Streams and captures made by the same lines with TRex's official client and with ours."""

from trex.stl.api import Ether, STLPktBuilder, STLProfile, STLStream, STLTXMultiBurst, STLTXSingleBurst


def capture(arguments):
    """A capture as streams."""
    return STLProfile.load_pcap(**arguments).get_streams()


def split(arguments):
    """A capture as streams of two ports."""
    first, second = STLProfile.load_pcap(**arguments)
    return first.get_streams() + second.get_streams()


def bursts(arguments):
    """A stream of bursts."""
    mode = STLTXMultiBurst(pkts_per_burst=2, count=3, pps=100, **arguments)
    return [STLStream(packet=STLPktBuilder(pkt=Ether() / ("x" * 50)), mode=mode)]


def chain(arguments):
    """Two streams, one after the other."""
    builder = STLPktBuilder(pkt=Ether() / ("x" * 50))
    first, second = arguments["names"]
    return [
        STLStream(name=first, packet=builder, mode=STLTXSingleBurst(pps=1, total_pkts=2), next=second),
        STLStream(name=second, packet=builder, self_start=False, isg=arguments["isg"]),
    ]


CASES = {one.__name__: one for one in (capture, split, bursts, chain)}


def made(name, arguments):
    """The streams of a case, in the form of the protocol."""
    return [stream.to_json() for stream in CASES[name](arguments)]
