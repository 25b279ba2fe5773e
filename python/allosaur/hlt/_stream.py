"""``STLHltStream``: streams from the arguments of the high-level traffic API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._errors import STLError
from ..streams._modes import STLTXCont, STLTXMode, STLTXMultiBurst, STLTXSingleBurst
from ..streams._packet import STLPktBuilder
from ..streams._profile import STLProfile
from ..streams._stream import STLFlowStats, STLStream
from ..streams._vm import STLVmFixIpv4
from ._arguments import IMIX_SIZES, RATES, Settings, read
from ._changes import Program, layer_2_changes, layer_3_changes, layer_4_changes
from ._headers import layer_2, layer_3, layer_4
from ._length import Headers, fill

#: Bytes that a frame takes on the wire beside itself: preamble and gap.
_WIRE_BYTES = 20
_MAC_PARTS = ("", "_mode", "_step", "_count")
_ADDRESS_PARTS = ("_addr", "_mode", "_step", "_count")


def STLHltStream(**arguments: Any) -> STLStream | list[STLStream]:  # noqa: N802 (the name of existing scripts)
    """The stream that the arguments of TRex's ``traffic_config`` say; a list with ``length_mode="imix"``.

    The guide "coming from TRex" has what differs. Sizes are in bytes with FCS, ``rate_pps`` in packets a
    second, ``rate_bps`` in bits of frames a second, ``rate_percent`` of the line rate, ``inter_burst_gap`` in
    microseconds.
    Raises ``STLError``, which names the argument.
    """
    settings = _oriented(read(arguments))
    rate = next((name for name in RATES if name in settings.given), "rate_percent")
    if settings["length_mode"] == "imix":
        return _imix(settings, rate)
    return _single(settings, rate)


def _oriented(settings: Settings) -> Settings:
    """With ``direction=1`` the other MAC addresses, and the two ends of IP exchanged."""
    if not settings["direction"]:
        return settings
    swapped = {}
    for end in ("src", "dst"):
        for part in _MAC_PARTS:
            # How the second address changes counts when it is said; else it changes as the first.
            if not part or f"mac_{end}2{part}" in settings.given:
                swapped[f"mac_{end}{part}"] = settings[f"mac_{end}2{part}"]
    for protocol in ("ip", "ipv6"):
        for part in _ADDRESS_PARTS:
            for end, other in (("src", "dst"), ("dst", "src")):
                swapped[f"{protocol}_{end}{part}"] = settings[f"{protocol}_{other}{part}"]
    return settings.but(**swapped)


def _imix(settings: Settings, rate: str) -> list[STLStream]:
    """A stream for each size that has a share; the shares are of packets."""
    more = {"rate_pps": None, "rate_bps": 0, "rate_percent": _WIRE_BYTES}[rate]
    shares: dict[int, float] = {}
    for number in range(1, IMIX_SIZES + 1):
        share, size = settings[f"l3_imix{number}_ratio"], settings[f"l3_imix{number}_size"]
        if share:
            shares[number] = share * (1 if more is None else size + more)
    if not shares:
        raise STLError("arguments 'l3_imix1_ratio' to 'l3_imix4_ratio' are all 0: give one above 0")
    streams = []
    for number, share in shares.items():
        one = {
            "length_mode": "fixed",
            "frame_size": settings[f"l3_imix{number}_size"],
            rate: settings[rate] * share / sum(shares.values()),
        }
        if settings["save_to_yaml"] is not None:
            path = Path(settings["save_to_yaml"])
            one["save_to_yaml"] = path.with_name(f"{path.stem}_imix{number}{path.suffix}")
        streams.append(_single(settings.but(**one), rate))
    return streams


def _single(settings: Settings, rate: str) -> STLStream:
    group = settings["flow_stats_id"] if settings["pg_id"] is None else settings["pg_id"]
    is_counted = group and settings["l3_protocol"] is not None and not settings["disable_flow_stats"]
    stream = STLStream(
        packet=_packet(settings),
        mode=_mode(settings, rate),
        flow_stats=STLFlowStats(group) if is_counted else None,
        random_seed=int(settings["consistent_random"]),
    )
    if settings["save_to_yaml"] is not None:
        STLProfile([stream]).dump_yaml(settings["save_to_yaml"])
    return stream


def _mode(settings: Settings, rate: str) -> STLTXMode:
    fast = {RATES[rate]: settings[rate]}
    if settings["transmit_mode"] == "continuous":
        return STLTXCont(**fast)
    packets = settings["pkts_per_burst"]
    if settings["transmit_mode"] == "single_burst":
        return STLTXSingleBurst(total_pkts=packets, **fast)
    gap, count = settings["inter_burst_gap"], settings["burst_loop_count"]
    return STLTXMultiBurst(pkts_per_burst=packets, ibg=gap, count=count, **fast)


def _packet(settings: Settings) -> STLPktBuilder:
    """The packet and its program: fields from the outermost, the length, the checksum of IPv4."""
    headers = Headers(layer_2(settings), layer_3(settings), layer_4(settings))
    program = Program()
    for change in layer_2_changes(settings):
        program.change(change)
    changed = [program.change(change) for change in layer_3_changes(settings)]
    changed += [program.change(change) for change in layer_4_changes(settings)]
    packet, lengths = fill(settings, headers)
    program.instructions += lengths
    is_ipv4 = settings["l3_protocol"] == "ipv4"
    if is_ipv4 and settings["ip_checksum"] is None and (any(changed) or lengths):
        program.instructions.append(STLVmFixIpv4("IP"))
    builder = STLPktBuilder(pkt=packet, vm=program.instructions)
    if settings["save_to_pcap"] is not None:
        builder.dump_pkt_to_pcap(settings["save_to_pcap"])
    return builder
