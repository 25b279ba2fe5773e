"""A capture with a field engine: each packet of it is sent from another client in each round.

It tests a device with real packets and many flows. The program is the same for every packet of the capture;
a place like "IP.src" is found in each.

Run it:  allosaur run capture_new_clients -t rounds=1000 -d 30 --local
Tunables: rounds (how often, 0 is forever), gap_us (microseconds between packets).
"""

from pathlib import Path

from allosaur import STLVM, STLProfile

CAPTURE = Path(__file__).parent / "captures" / "dns.pcap"


class CaptureNewClients:
    """The client's side of a talk, from many clients."""

    def get_streams(self, direction=0, rounds=100, gap_us=100):
        """Return the streams. The capture's UDP checksums are zero, and so stay right."""
        vm = STLVM()
        vm.var(name="client", min_value="16.0.0.1", max_value="16.0.255.254", size=4, op="inc")
        vm.write(fv_name="client", pkt_offset="IP.src")
        vm.fix_chksum()
        options = {"ipg_usec": gap_us, "loop_count": rounds, "split_mode": "IP"}
        queries, _answers = STLProfile.load_pcap(CAPTURE, vm=vm, **options)
        return queries.get_streams()


def register():
    return CaptureNewClients()
