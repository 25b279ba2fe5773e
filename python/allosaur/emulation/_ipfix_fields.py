"""Fields of records by name: IANA's information elements of IPFIX, and Cisco's of application visibility.

Each is what a generator of the plugin `ipfix` wants of a field. `data` is an example until you set it, the
same as that of TRex's client.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

_CISCO = 9
"""The private enterprise number."""
_IANA_FIELDS = """
octetDeltaCount 1 8 331268, packetDeltaCount 2 8 69124, protocolIdentifier 4 1 17,
sourceTransportPort 7 2 1281, sourceIPv4Address 8 4 192.168.0.1, ingressInterface 10 4,
destinationTransportPort 11 2 53, destinationIPv4Address 12 4 192.168.0.254, flowEndSysUpTime 21 4
10, flowStartSysUpTime 22 4 1, sourceIPv6Address 27 16 2001:ffff::1, destinationIPv6Address 28 16
2001:ffff::2, samplerId 48 4, samplerMode 49 1, samplerRandomInterval 50 2, ipVersion 60 1 4,
flowDirection 61 1 1, interfaceName 82 32 =Te0/0/0, interfaceDescription 83 64
=TenGigabitEthernet0/0/0, samplerName 84 40 =sample, applicationDescription 94 55 =Internet Control
Message Protocol, applicationId 95 4 16777217, applicationName 96 24 =icmp, observationPointId 138
8 117637380, flowStartMilliseconds 152 8 65280, flowEndMilliseconds 153 8 1530, ingressVRFID 234 4,
VRFname 236 32, biflowDirection 239 1 1, newConnectionDeltaCount 278 4 20, p2pTechnology 288 10 =no,
tunnelTechnology 289 10 =no, encryptedTechnology 290 10 =no, initiatorPackets 298 8 10,
responderPackets 299 8 10
"""
_CISCO_FIELDS = """
transportRtpSsrc 37022 4, collectTransportPacketsLostCounter 37019 4 67,
collectTransportRtpPayloadType 37041 1 3, serverBytesL3 41105 8 256, clientBytesL3 41106 8 240,
retransPackets 42036 4 529, ARTServerRetransmissionsPackets 42038 4 5, numRespsCountDelta 42060 4
25, sumServerRespTime 42074 4 6412, sumNwkTime 42081 4 328460, sumServerNwkTime 42087 4 66073,
applicationFamilyName 44998 32 =routing, applicationSetName 44999 32 =network-control,
applicationCategoryName 45000 32 =other, applicationSubCategoryName 45001 32 =other,
applicationGroupName 45002 32 =other, nbar2HttpHost 45003 7 =sss.edu, clientIPv4Address 45004 4
16.0.0.1, serverIPv4Address 45005 4 48.0.0.1, clientIPv6Address 45006 16 2001:ffff::3,
serverIPv6Address 45007 16 2001:ffff::4, clientTransportPort 45008 2 33000, serverTransportProtocol
45009 2 53, applicationTrafficClass 45011 32 =ops-admin-mgmt, applicationBusinessRelevance 45012 32
=default, unknownNameField 45012 32 =business-relevant, unknownNameField2 44999 32
=network-control, unknownNameField3 44998 32 =routing, unknownNameField4 37093 8
"""

Field = dict[str, Any]


class IpfixFields:
    """Fields by name; who makes more of them puts them into `_fields`."""

    def __init__(self) -> None:
        self._fields: dict[str, Field] = {}

    def __getitem__(self, field: str) -> Field:
        """The field of this name, a copy for you to change. Raises ``KeyError``."""
        return dict(self._fields[field])

    def get(self, field: str, default: Any = None) -> Any:
        """The field of this name, or the default."""
        return self[field] if field in self._fields else default


class AvcIpfixFields(IpfixFields):
    """The fields that routers export of the applications that they see."""

    CISCO_PEN = _CISCO

    def __init__(self) -> None:
        super().__init__()
        self._add(_IANA_FIELDS, {})
        self._add(_CISCO_FIELDS, {"enterprise_number": _CISCO})

    def _add(self, table: str, more: Field) -> None:
        for row in table.replace("\n", " ").split(","):
            name, kind, length, *value = row.split(maxsplit=3)
            sizes = {"type": int(kind), "length": int(length)}
            self._fields[name] = {"name": name, **sizes, **more, "data": _data("".join(value), int(length))}


def _data(text: str, length: int) -> list[int]:
    """Return the bytes of a value: a text behind `=`, an address, a number, or none for zeros."""
    if text.startswith("="):
        found = text.removeprefix("=").encode()
    elif "." in text or ":" in text:
        found = ip_address(text).packed
    else:
        found = int(text or "0").to_bytes(length, "big")
    return list(found.ljust(length, b"\0"))
