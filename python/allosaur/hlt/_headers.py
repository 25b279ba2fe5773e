"""The headers of a packet: Ethernet, VLAN tags, IPv4 or IPv6, TCP or UDP."""

from __future__ import annotations

from typing import Any

from .._errors import STLError
from ..packets._scapy import IP, Ether, IPv6, Packet
from ._arguments import TAGS, Settings

# Below Scapy's set-up, which the import above does.
from scapy.layers.inet import TCP, UDP  # isort: skip
from scapy.layers.l2 import Dot1Q  # isort: skip

#: The bits of the type of service, in three ways to say them, each part with its lowest bit.
_SERVICES: tuple[dict[str, int], ...] = (
    {"ip_precedence": 5, "ip_tos_field": 1, "ip_mbz": 0},
    {
        "ip_precedence": 5,
        "ip_delay": 4,
        "ip_throughput": 3,
        "ip_reliability": 2,
        "ip_cost": 1,
        "ip_reserved": 0,
    },
    {"ip_dscp": 2, "ip_cu": 0},
)
_TCP_FLAGS = ("fin", "syn", "rst", "psh", "ack", "urg")


def tags(settings: Settings) -> list[dict[str, Any]]:
    """The arguments of each VLAN tag, from the outermost; none without tags."""
    if settings["l2_encap"] != "ethernet_ii_vlan" and not settings.given & TAGS.keys():
        return []
    count = max(len(settings[name]) for name in TAGS)
    return [
        {
            name: settings[name][number] if number < len(settings[name]) else row.default
            for name, row in TAGS.items()
        }
        for number in range(count)
    ]


def layer_2(settings: Settings) -> Packet:
    """Ethernet and its VLAN tags; with ``ignore_macs`` the addresses are left to the port."""
    packet: Packet = (
        Ether() if settings["ignore_macs"] else Ether(src=settings["mac_src"], dst=settings["mac_dst"])
    )
    for tag in tags(settings):
        if tag["vlan_protocol_tag_id"] is not None:
            packet.lastlayer().type = tag["vlan_protocol_tag_id"]
        packet /= Dot1Q(prio=tag["vlan_user_priority"], dei=tag["vlan_cfi"], vlan=tag["vlan_id"])
    return packet


def layer_3(settings: Settings) -> Packet | None:
    """The header of ``l3_protocol``, or None."""
    if settings["l3_protocol"] == "ipv4":
        return IP(
            tos=_service(settings),
            id=settings["ip_id"],
            frag=settings["ip_fragment_offset"],
            ttl=settings["ip_ttl"],
            chksum=settings["ip_checksum"],
            src=settings["ip_src_addr"],
            dst=settings["ip_dst_addr"],
        )
    if settings["l3_protocol"] == "ipv6":
        next_header = settings["ipv6_next_header"]
        return IPv6(
            tc=settings["ipv6_traffic_class"],
            fl=settings["ipv6_flow_label"],
            plen=settings["ipv6_length"],
            hlim=settings["ipv6_hop_limit"],
            src=settings["ipv6_src_addr"],
            dst=settings["ipv6_dst_addr"],
            **({} if next_header is None else {"nh": next_header}),
        )
    return None


def layer_4(settings: Settings) -> Packet | None:
    """The header of ``l4_protocol``, or None. Raises ``STLError`` when there is no IP below it."""
    protocol = settings["l4_protocol"]
    if protocol is None:
        return None
    if settings["l3_protocol"] is None:
        raise STLError(f"argument 'l4_protocol' is '{protocol}': give l3_protocol, too, 'ipv4' or 'ipv6'")
    ports = {"sport": settings[f"{protocol}_src_port"], "dport": settings[f"{protocol}_dst_port"]}
    if protocol == "udp":
        return UDP(**ports, len=settings["udp_length"])
    return TCP(
        **ports,
        seq=settings["tcp_seq_num"],
        ack=settings["tcp_ack_num"],
        dataofs=settings["tcp_data_offset"],
        flags="".join(name[0].upper() for name in _TCP_FLAGS if settings[f"tcp_{name}_flag"]),
        window=settings["tcp_window"],
        chksum=settings["tcp_checksum"],
        urgptr=settings["tcp_urgent_ptr"],
    )


def _service(settings: Settings) -> int:
    """The type of service of IPv4, from the one way in which the caller says it."""
    ways = [way for way in _SERVICES if settings.given & way.keys()]
    fitting = [way for way in ways if settings.given & set().union(*ways) <= way.keys()]
    if ways and not fitting:
        names = ", ".join(sorted(settings.given & set().union(*ways)))
        raise STLError(
            f"arguments {names} say the type of service in two ways: give only those of one of "
            + " or ".join(f"({', '.join(way)})" for way in _SERVICES)
        )
    way = fitting[0] if fitting else _SERVICES[-1]
    return sum(int(settings[name]) << lowest_bit for name, lowest_bit in way.items())
