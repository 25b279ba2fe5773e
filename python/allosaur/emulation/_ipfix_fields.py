"""Fields of records by name: IANA's information elements of IPFIX, and Cisco's of application visibility.

Each is what a generator of the plugin `ipfix` wants of a field; `data` is zero until you set it.
"""

from __future__ import annotations

from typing import Any

_CISCO = 9
"""The private enterprise number."""
_IANA_FIELDS = """
octetDeltaCount 1 8, packetDeltaCount 2 8, protocolIdentifier 4 1, sourceTransportPort 7 2,
sourceIPv4Address 8 4, ingressInterface 10 4, destinationTransportPort 11 2, destinationIPv4Address
12 4, flowEndSysUpTime 21 4, flowStartSysUpTime 22 4, sourceIPv6Address 27 16,
destinationIPv6Address 28 16, samplerId 48 4, samplerMode 49 1, samplerRandomInterval 50 2,
ipVersion 60 1, flowDirection 61 1, interfaceName 82 32, interfaceDescription 83 64, samplerName 84
40, applicationDescription 94 55, applicationId 95 4, applicationName 96 24, observationPointId 138
8, flowStartMilliseconds 152 8, flowEndMilliseconds 153 8, ingressVRFID 234 4, VRFname 236 32,
biflowDirection 239 1, newConnectionDeltaCount 278 4, p2pTechnology 288 10, tunnelTechnology 289 10,
encryptedTechnology 290 10, initiatorPackets 298 8, responderPackets 299 8
"""
_CISCO_FIELDS = """
transportRtpSsrc 37022 4, collectTransportPacketsLostCounter 37019 4, collectTransportRtpPayloadType
37041 1, serverBytesL3 41105 8, clientBytesL3 41106 8, retransPackets 42036 4,
ARTServerRetransmissionsPackets 42038 4, numRespsCountDelta 42060 4, sumServerRespTime 42074 4,
sumNwkTime 42081 4, sumServerNwkTime 42087 4, applicationFamilyName 44998 32, applicationSetName
44999 32, applicationCategoryName 45000 32, applicationSubCategoryName 45001 32,
applicationGroupName 45002 32, nbar2HttpHost 45003 7, clientIPv4Address 45004 4, serverIPv4Address
45005 4, clientIPv6Address 45006 16, serverIPv6Address 45007 16, clientTransportPort 45008 2,
serverTransportProtocol 45009 2, applicationTrafficClass 45011 32, applicationBusinessRelevance
45012 32
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
            name, kind, length = row.split()
            sizes = {"type": int(kind), "length": int(length)}
            self._fields[name] = {"name": name, **sizes, **more, "data": [0] * int(length)}
