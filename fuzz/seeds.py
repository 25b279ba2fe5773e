"""Write the seeds of the fuzz targets that read packets, from the recorded captures: python fuzz/seeds.py.

Those of ``stateful`` and ``tcp`` are decisions, not packets: README.md says how they are made.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scapy.all import (
    ARP,
    GRE,
    ICMP,
    IP,
    TCP,
    UDP,
    VXLAN,
    Dot1Q,
    Ether,
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PcapNgWriter,
    RawPcapReader,
    fragment,
    wrpcap,
)
from scapy.contrib.mpls import MPLS

ROOT = Path(__file__).resolve().parent
RECORDED = ROOT.parent / "tests" / "data"
#: Longer inputs are slower and find nothing more.
FRAME_BYTES_MAX, FILE_BYTES_MAX = 256, 1024
#: The host of the target `host`.
HOST_MAC, HOST4, HOST6 = "02:00:00:00:00:01", "10.0.0.1", "fe80::1"
ETHERNET_BYTES = 14
#: A packet inside of a tunnel, and the choices of the target `encapsulation` in front of it.
INNER = bytes.fromhex("4500002800010000400600000a00000130000001") + bytes(20)
CHOICES = (0, 4, 5, 6, 7)


def recorded() -> list[bytes]:
    """Frames of the captures, one for each sequence of headers and length class."""
    found: dict[tuple[str, int], bytes] = {}
    for path in sorted([*RECORDED.glob("pcap/*.pcap"), *RECORDED.glob("golden-stateless/*.pcap")]):
        for data, _ in RawPcapReader(str(path)):
            layers = "/".join(
                layer.__name__ for layer in Ether(data).layers() if layer.__module__.startswith(KNOWN)
            )
            found.setdefault((layers, len(data) > FRAME_BYTES_MAX), bytes(data))
    return list(found.values())


KNOWN = ("scapy.layers.l2", "scapy.layers.inet", "scapy.contrib.mpls", "scapy.layers.vxlan")


def made() -> list[Any]:
    """Frames that no capture has."""
    v4, v6 = IP(src="10.0.0.9", dst=HOST4), IPv6(src="fe80::9", dst=HOST6)
    long = IP(src="10.0.0.9", dst=HOST4) / UDP(sport=1, dport=2) / bytes(60)
    packets = [
        ARP(psrc="10.0.0.9", pdst=HOST4),
        v4 / ICMP(id=7, seq=1) / b"echo",
        v6 / ICMPv6EchoRequest(id=7, seq=1) / b"echo",
        v6 / ICMPv6ND_NS(tgt=HOST6),
        v6 / ICMPv6ND_NA(tgt=HOST6),
        v4
        / TCP(
            sport=1025,
            dport=80,
            options=[("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 0)), ("WScale", 7)],
        ),
        v4 / TCP(sport=1025, dport=80, flags="A", options=[("SAck", (5, 9, 20, 30))]),
        v6 / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / UDP(sport=1, dport=2) / b"options",
        v6 / IPv6ExtHdrRouting(addresses=["fe80::2"]) / TCP(sport=1, dport=2),
        v6 / IPv6ExtHdrFragment(offset=1, m=1) / b"fragment",
        v4 / GRE() / IP() / UDP(),
        v4 / UDP(sport=1337, dport=4789) / VXLAN(vni=42) / Ether() / IP() / UDP(),
        MPLS(label=16, s=1) / v4 / UDP(),
        *fragment(long, fragsize=40),
    ]
    plain = Ether(src="02:00:00:00:00:09", dst=HOST_MAC)
    frames = [plain / packet for packet in packets]
    tagged = [plain / Dot1Q(vlan=100) / packet for packet in packets[:4]]
    twice = [Ether(src=plain.src, dst=HOST_MAC, type=0x88A8) / Dot1Q(vlan=100) / Dot1Q(vlan=200) / packets[1]]
    return [*frames, *tagged, *twice]


def headers(frames: Iterable[bytes]) -> Iterable[bytes]:
    """Each header of each frame, behind the number by which the target `headers` knows it."""
    kinds = ["Ether", "Dot1Q", "ARP", "IP", "IPv6", "IPv6ExtHdrFragment", "IPv6ExtHdrHopByHop"]
    kinds += ["IPv6ExtHdrRouting", "ICMP", "ICMPv6EchoRequest", "TCP", "UDP"]
    seen: set[tuple[str, int]] = set()
    for data in frames:
        layer = Ether(data)
        while layer:
            name = type(layer).__name__
            bytes_of = bytes(layer.original)[:64]
            place = (name, layer.dataofs if name == "TCP" else 0)
            if name in kinds and bytes_of and place not in seen:
                seen.add(place)
                yield bytes([kinds.index(name)]) + bytes_of
            layer = layer.payload


def bgp() -> list[bytes]:
    """Bodies of OPEN and UPDATE, whole messages, and a file of MRT with one route."""
    origin, path = bytes.fromhex("40010100"), bytes.fromhex("40020602010000fde8")
    shared = origin + path
    ipv4 = shared + bytes.fromhex("400304c0000201c0080400640001")
    next_hop = bytes.fromhex("20010db8") + bytes(11) + b"\1"
    reach = bytes.fromhex("800e1c00020110") + next_hop + bytes.fromhex("003020010db80001")
    updates = [
        b"\0\0" + len(ipv4).to_bytes(2, "big") + ipv4 + bytes.fromhex("18c63364"),
        b"\0\0" + len(reach + shared).to_bytes(2, "big") + reach + shared,
        bytes.fromhex("000418c633640000"),
        bytes.fromhex("00000006800f03000201"),
    ]
    opened = bytes.fromhex("04fdea0009c00002020e020c01040001000141040000fdea")
    messages = [b"\xff" * 16 + (19 + len(body)).to_bytes(2, "big") + b"\2" + body for body in updates]
    peers = bytes.fromhex("c00002fe0000000102c0000201c00002010000fdea")
    route = bytes.fromhex("0000000018c633640001000000000000") + len(ipv4).to_bytes(2, "big") + ipv4
    records = [(1, peers), (2, route)]
    head = bytes.fromhex("00000000000d")
    lengths = [kind.to_bytes(2, "big") + len(body).to_bytes(4, "big") for kind, body in records]
    mrt = b"".join(head + length + body for length, (_, body) in zip(lengths, records, strict=True))
    return [opened, *updates, b"".join(messages), mrt]


def write(target: str, seeds: Iterable[bytes], longest: int) -> None:
    """Write the seeds of a target, each once, in place of those that it had."""
    folder = ROOT / "seeds" / target
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kept = list(dict.fromkeys(seed[:longest] for seed in seeds))
    for number, seed in enumerate(kept):
        (folder / f"{number:02}").write_bytes(seed)
    print(f"{target}: {len(kept)} seeds, {sum(map(len, kept))} bytes")


def files(scratch: Path) -> dict[str, list[bytes]]:
    """Capture files of both kinds: small ones that were recorded, and one of ours with nanoseconds."""
    small = [path for path in sorted(RECORDED.glob("pcap/*.pcap")) if path.stat().st_size <= FILE_BYTES_MAX]
    frames = [Ether(bytes(frame)) for frame in made()[:5]]
    ours, ng = scratch / "ours.pcap", scratch / "ours.pcapng"
    wrpcap(str(ours), frames, nano=True)
    with PcapNgWriter(str(ng)) as writer:
        writer.write(frames)
    # The target gives the start of a file, so a seed is a whole section, or the blocks after its header.
    section = ng.read_bytes()
    header_bytes = int.from_bytes(section[4:8], "little")
    pcap = [path.read_bytes() for path in [*small, ours]]
    # Big-endian magic numbers, for files of other machines.
    pcap.append(
        bytes.fromhex("a1b2c3d4000200040000000000000000ffffffff00000001") + bytes(12) + bytes([0, 0, 0, 0])
    )
    return {"pcap": pcap, "pcapng": [section, section[header_bytes:]]}


def main() -> None:
    """Write them all."""
    frames = [*recorded(), *(bytes(frame) for frame in made())]
    write("bgp", bgp(), FILE_BYTES_MAX)
    write("frame", frames, FRAME_BYTES_MAX)
    write("headers", headers(frames), FRAME_BYTES_MAX)
    own = [bytes(frame) for frame in made()]
    whole = [bytes([0]) + frame for frame in own]
    begun = [bytes([0x80]) + frame[ETHERNET_BYTES - 2 :] for frame in own]
    write("host", [*whole, *begun], FRAME_BYTES_MAX)
    write("encapsulation", [bytes([choice]) + INNER for choice in CHOICES], FRAME_BYTES_MAX)
    scratch = ROOT / "seeds" / ".scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        for target, seeds in files(scratch).items():
            write(target, seeds, FILE_BYTES_MAX)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
