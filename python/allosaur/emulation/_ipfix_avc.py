"""Generators of what routers export of the applications that they see, by TRex's names.

    generators = AVCGenerators(["256-data-tcp-5t", "257-options-applications", "258-options-attributes"])
    profile = IpfixProfile(IpfixPlugin(IpfixUdpExporterParams("16.0.0.254", 4739), generators)).get_profile()

| name | records |
|---|---|
| `256`, `257`, `258` | names of interfaces, of virtual routers, of samplers: options |
| `259`, `260` | applications, and what is known of them: options |
| `266`, `267` | connections between clients and servers, with response times, over IPv4 and IPv6 |
| `268`, `269` | media streams, over IPv4 and IPv6 |
| `256-data-tcp-5t` | connections, each client by each of its applications |
| `257-options-applications`, `258-options-attributes` | these, and what is known of them: options |
| `Dummy` | none |
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from ._ipfix import IpfixGenerators, Json
from ._ipfix_applications import applications
from ._ipfix_fields import AvcIpfixFields

_APPLICATIONS = 41
_CLIENTS = 48
_CONNECTION = """
ipVersion protocolIdentifier serverTransportProtocol ingressVRFID biflowDirection observationPointId
applicationId flowDirection flowStartMilliseconds flowEndMilliseconds newConnectionDeltaCount
numRespsCountDelta sumServerNwkTime retransPackets sumNwkTime sumServerRespTime responderPackets
initiatorPackets ARTServerRetransmissionsPackets serverBytesL3 clientBytesL3
"""
_STREAM = """
ipVersion protocolIdentifier sourceTransportPort destinationTransportPort transportRtpSsrc
collectTransportRtpPayloadType ingressVRFID biflowDirection observationPointId applicationId
flowDirection collectTransportPacketsLostCounter octetDeltaCount packetDeltaCount flowStartMilliseconds
flowEndMilliseconds unknownNameField4
"""
_ATTRIBUTES = """
applicationId applicationCategoryName applicationSubCategoryName applicationGroupName
applicationTrafficClass applicationBusinessRelevance p2pTechnology tunnelTechnology encryptedTechnology
applicationSetName applicationFamilyName
"""
_KNOWN = """
applicationId applicationCategoryName applicationSubCategoryName applicationGroupName unknownNameField
p2pTechnology tunnelTechnology encryptedTechnology unknownNameField2 unknownNameField3
"""
_PROTOCOLS = """
34 3pc Third Party Connect Protocol, 107 an Active Networks, 61 any-host-internal any host internal
protocol, 13 argus ARGUS, 104 aris ARIS, 93 ax25 AX.25 Frames, 10 bbnrccmon BBN RCC Monitoring, 49 bna
BNA, 76 br-sat-mon Backroom SATNET Monitoring, 7 cbt CBT, 62 cftp CFTP, 16 chaos CHAOS, 110 compaq-peer
Compaq Peer Protocol, 73 cphb Computer Protocol Heart Beat, 72 cpnx Computer Protocol Network Executive,
126 crtp Combat Radio Transport Protocol
"""
"""Protocols over IP, by IANA's numbers."""


class AVCGenerators(IpfixGenerators):
    """Ready generators by name; with names only those are taken, in their order."""

    def __init__(
        self, gen_names_list: Iterable[str] | None = None, apps_per_client: int = _APPLICATIONS
    ) -> None:
        """Make them; records of `256-data-tcp-5t` go through so many applications of each client."""
        super().__init__(AvcIpfixFields(), gen_names_list)
        self._apps = applications(apps_per_client)
        self._now_ms = int(time.time() * 1000)
        self._add("Dummy", 256, "flowStartSysUpTime", [_uint("flowStartSysUpTime", 4, 0, 1, 10, "inc")])
        self._generators["Dummy"] |= {"rate_pps": 0.0, "template_rate_pps": 0.0}
        self._add_tables()
        self._add_connections()
        self._add_streams()
        self._add_applications()

    def _add(
        self,
        name: str,
        template_id: int,
        fields: str,
        engines: Sequence[Json],
        rate_pps: float = 0.1,
        records: int | None = 0,
    ) -> Json:
        generator: Json = {"name": name, "auto_start": True, "rate_pps": rate_pps}
        generator |= {} if records is None else {"data_records_num": records}
        generator |= {"template_id": template_id, "fields": [self._fields[field] for field in fields.split()]}
        self._generators[name] = {**generator, "engines": list(engines)}
        return self._generators[name]

    def _add_options(self, name: str, template_id: int, *more: Any) -> Json:
        generator = self._add(name, template_id, *more)
        generator |= {"is_options_template": True, "scope_count": 1}
        return generator

    def _add_tables(self) -> None:
        digits = (ord("0"), ord("9"), "inc")
        engines = [_uint("interfaceName", 1, 6, *digits), _uint("interfaceDescription", 1, 22, *digits)]
        self._add_options("256", 256, "interfaceName interfaceDescription", engines)
        engines = [
            _list("ingressVRFID", "uint_list", 4, [1, 2, 8191]),
            _list("VRFname", "string_list", 32, ["Mgmt-Intf", "FNF", "__Platform_iVRF:_ID00_"]),
        ]
        self._add_options("257", 257, "ingressVRFID VRFname", engines, 0.1, 3)
        engines = [
            _uint("samplerId", 1, 3, 2, 4, "inc", step=2),
            _uint("samplerMode", 1, 0, 1, 2),
            _uint("samplerRandomInterval", 2, 0, 0, 255),
        ]
        fields = "samplerId samplerName samplerMode samplerRandomInterval"
        self._add_options("258", 258, fields, engines, 0.1, 2)
        rows = [row.split(maxsplit=2) for row in _PROTOCOLS.replace("\n", " ").split(",")]
        engines = [
            _list("applicationId", "uint_list", 1, [int(number) for number, _, _ in rows], offset=3),
            _list("applicationName", "string_list", 24, [name for _, name, _ in rows]),
            _list("applicationDescription", "string_list", 55, [text for _, _, text in rows]),
        ]
        fields = "applicationId applicationName applicationDescription"
        self._add_options("259", 259, fields, engines, 90, len(rows))
        categories = ["other", "file-sharing", "browsing", "general-browsing", "net-admin", "database"]
        yes_or_no = [int.from_bytes(text, "big") for text in (b"yes\0", b"no\0\0")]
        engines = [
            _uint("applicationId", 1, 3, 1, 255),
            _list("applicationCategoryName", "string_list", 32, categories, "rand"),
            _histogram("tunnelTechnology", 4, dict.fromkeys(yes_or_no, 1)),
        ]
        self._add_options("260", 260, _KNOWN, engines, 290, 5)

    def _add_connections(self) -> None:
        services = {53: 2, 80: 3}
        common = [_histogram("protocolIdentifier", 1, {6: 2, 17: 1})]
        common += [_histogram("serverTransportProtocol", 2, services), *_counts()]
        ends = [_uint("clientIPv4Address", 2, 2, 1, 0xFFFE)]
        ends += [_uint("serverIPv4Address", 4, 0, 0x3000_0000, 0x3005_FFFF)]
        times = self._times((10_000, 20_000), (5_000, 10_000))
        fields = f"clientIPv4Address serverIPv4Address {_CONNECTION}"
        self._add("266", 266, fields, [*ends, *common, *times], 100, 10)
        most = (1 << 64) - 1
        ends = [_uint("clientIPv6Address", 8, 8, 1, most), _uint("serverIPv6Address", 8, 8, 0, most)]
        times = self._times((1_000, 2_000), (10_000, 20_000))
        fields = f"clientIPv6Address serverIPv6Address {_CONNECTION}"
        self._add("267", 267, fields, [*ends, *common, *times])

    def _add_streams(self) -> None:
        common = [_same("transportRtpSsrc", 4, 0xB57A_6710), _same("applicationId", 4, 13 << 24 | 61)]
        common += [
            _histogram("observationPointId", 8, {_POINT: 2}),
            _uint("flowDirection", 1, 0, 0, 1, "inc"),
        ]
        common += [
            _uint("octetDeltaCount", 4, 4, 0, (1 << 32) - 1),
            _uint("packetDeltaCount", 2, 6, 0, 0xFFFF),
        ]
        common += self._times((10_000, 20_000), (5_000, 10_000))
        ports = ("sourceTransportPort", "destinationTransportPort")
        ends = [_same("sourceIPv4Address", 4, 0x300B_017F), _same("destinationIPv4Address", 4, 0x1000_00D1)]
        ends += [_uint(port, 2, 0, 1024, 0xFFFF) for port in ports]
        fields = f"sourceIPv4Address destinationIPv4Address {_STREAM}"
        self._add("268", 268, fields, [*ends, *common], 6, 10)
        ends = [
            _list("sourceIPv6Address", "uint_list", 8, [1, 2], offset=8),
            _list("destinationIPv6Address", "uint_list", 8, [2, 1], offset=8),
            _same("ipVersion", 1, 6),
            _list(ports[0], "uint_list", 2, [50_302, 500]),
            _list(ports[1], "uint_list", 2, [500, 50_302]),
        ]
        fields = f"sourceIPv6Address destinationIPv6Address {_STREAM}"
        self._add("269", 269, fields, [*ends, *common], 0.1, 10)

    def _add_applications(self) -> None:
        numbers = _list("applicationId", "uint_list", 4, [one.number for one in self._apps])
        engines = [
            _uint("clientIPv4Address", 2, 2, 1, _CLIENTS, "inc", repeat=len(self._apps)),
            _uint("serverIPv4Address", 2, 2, 1, _CLIENTS, "inc"),
            numbers,
            _same("protocolIdentifier", 1, 17),
            _same("serverTransportProtocol", 2, 80),
            *_counts(),
            *self._times((10_000, 20_000), (5_000, 10_000)),
        ]
        fields = f"clientIPv4Address serverIPv4Address {_CONNECTION}"
        self._add("256-data-tcp-5t", 256, fields, engines, 100, 10)
        texts = [
            _list("applicationName", "string_list", 24, [one.name for one in self._apps]),
            _list("applicationDescription", "string_list", 55, [one.description for one in self._apps]),
        ]
        described = "applicationId applicationName applicationDescription"
        relevance = ["business-relevant"] * len(self._apps)
        relevant = _list("applicationBusinessRelevance", "string_list", 32, relevance)
        for name, number, fields, engines in (
            ("257-options-applications", 257, described, [numbers, *texts]),
            ("258-options-attributes", 258, _ATTRIBUTES, [numbers, relevant]),
        ):
            generator = self._add_options(name, number, fields, engines, 0.01, None)
            # The server knows them by this name, as TRex's does.
            generator |= {"name": f"{number}-options-template", "template_rate_pps": 0.01}

    def _times(self, pause_ms: tuple[int, int], duration_ms: tuple[int, int]) -> list[Json]:
        """Return the engines of when a flow begins and ends, from now on."""
        start, end = "flowStartMilliseconds", "flowEndMilliseconds"
        begin: Json = {"time_end_engine_name": end, "ipg_min": pause_ms[0], "ipg_max": pause_ms[1]}
        begin["time_offset"] = self._now_ms
        last = {
            "time_start_engine_name": start,
            "duration_min": duration_ms[0],
            "duration_max": duration_ms[1],
        }
        return [_engine(start, "time_start", 8, 0, begin), _engine(end, "time_end", 8, 0, last)]


_POINT = (1 << 32) + 3
"""The observation point."""


def _counts() -> list[Json]:
    """Return the engines of what a connection moved."""
    return [
        _histogram("observationPointId", 8, {_POINT: 2}),
        _uint("newConnectionDeltaCount", 1, 3, 1, 2, "inc"),
        *(_uint(name, 1, 7, 1, 255) for name in ("responderPackets", "initiatorPackets")),
        *(_uint(name, 2, 6, 0, 0xFFFF) for name in ("serverBytesL3", "clientBytesL3")),
    ]


def _engine(name: str, kind: str, size: int, offset: int, params: Json) -> Json:
    return {"engine_name": name, "engine_type": kind, "params": {"size": size, "offset": offset, **params}}


def _uint(name: str, size: int, offset: int, low: int, high: int, op: str = "rand", **more: int) -> Json:
    return _engine(name, "uint", size, offset, {"op": op, "min": low, "max": high, **more})


def _same(name: str, size: int, value: int) -> Json:
    return _uint(name, size, 0, value, value, "inc")


def _list(name: str, kind: str, size: int, values: Sequence[Any], op: str = "inc", offset: int = 0) -> Json:
    return _engine(name, kind, size, offset, {"op": op, "list": list(values)})


def _histogram(name: str, size: int, shares: dict[int, int]) -> Json:
    kind = "histogram_uint64" if size == 8 else "histogram_uint"
    entries = [{"v": value, "prob": share} for value, share in shares.items()]
    return _engine(name, kind, size, 0, {"entries": entries})
