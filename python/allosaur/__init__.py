"""Allosaur: generate traffic, receive it, and say what was lost.

To talk to a server:
    STLClient, ASTFClient, PortProfileID, Event, CapturedPacket, PacketBuffer
To say what to send:
    STLProfile, STLStream, STLPktBuilder, STLTXCont, STLTXSingleBurst, STLTXMultiBurst,
    STLFlowStats, STLFlowLatencyStats,
    STLStreamDstMAC_CFG_FILE, STLStreamDstMAC_PKT, STLStreamDstMAC_ARP
To change packets on the way out (the field engine):
    STLVM, STLScVmRaw, STLIPRange, STLVmFlowVar, STLVmFlowVarRepeatableRandom, STLVmTupleGen,
    STLVmWrFlowVar, STLVmWrMaskFlowVar, STLVmFixIpv4, STLVmFixChecksumHw, STLVmFixIcmpv6,
    STLVmTrimPktSize
To ask and answer with packets of your own (services):
    STLService, STLServiceFilter, STLServiceARP, STLServiceICMP, STLServiceICMPv6, STLServiceIPv6ND,
    STLServiceIPv6Scan, STLServiceDHCP, VLAN, ServiceContext, ServicePipe, PingRecord
To say which flows to open (stateful traffic):
    ASTFProfile, ASTFProfileLight, ASTFTemplate, ASTFTCPClientTemplate, ASTFTCPServerTemplate,
    ASTFProgram, ASTFCapInfo, ASTFTCPInfo, ASTFIPGen, ASTFIPGenDist, ASTFIPGenGlobal,
    ASTFAssociation, ASTFAssociationRule, ASTFGlobalInfo, ASTFGlobalInfoPerTemplate,
    ASTFCluster, ASTFTCPOptions, ASTFTopology, TopoVIF, TopoGW
To make the commands of its programs one by one:
    ASTFCmd, ASTFCmdSend, ASTFCmdRecv, ASTFCmdTxPkt, ASTFCmdRecvMsg, ASTFCmdKeepaliveMsg,
    ASTFCmdCloseMsg, ASTFCmdDelay, ASTFCmdDelayRnd, ASTFCmdReset, ASTFCmdNoClose, ASTFCmdConnect,
    ASTFCmdTxMode, ASTFCmdSetVal, ASTFCmdAddVal, ASTFCmdSetTickVar, ASTFCmdAddTickVar,
    ASTFCmdAddStatsVal, ASTFCmdAddTickStats, ASTFCmdJMPNZ, ASTFCmdJMPDP, ASTFCmdJMPCMP,
    ASTFCmdSetTemplate, ASTFCmdExecTemplate
What can go wrong:
    STLError, STLTypeError, STLArgumentError, STLTimeoutError, STLConnectionError, STLRpcError,
    STLPacketError, STLProfileError, ASTFError

Modules: ``allosaur.api`` (all of this and Scapy's layers, for ``import *``), ``allosaur.server``
(start a server on this machine), ``allosaur.testing`` (test a script without a server).

Importing this package is cheap: each name is loaded when it is first used, Scapy with the first
packet.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._client import STLClient
    from ._errors import (
        STLArgumentError,
        STLConnectionError,
        STLError,
        STLPacketError,
        STLProfileError,
        STLRpcError,
        STLTimeoutError,
        STLTypeError,
    )
    from ._events import Event
    from ._modes import STLTXCont, STLTXMultiBurst, STLTXSingleBurst
    from ._packet import STLPktBuilder
    from ._packets import CapturedPacket, PacketBuffer
    from ._places import PortProfileID
    from ._profile import STLProfile
    from ._program import STLVM, STLIPRange, STLScVmRaw
    from ._services._arp import STLServiceARP
    from ._services._context import ServiceContext
    from ._services._dhcp import STLServiceDHCP
    from ._services._icmp import STLServiceICMP
    from ._services._icmpv6 import STLServiceICMPv6
    from ._services._nd import STLServiceIPv6ND
    from ._services._ping_record import PingRecord
    from ._services._pipe import ServicePipe
    from ._services._scan6 import STLServiceIPv6Scan
    from ._services._service import STLService, STLServiceFilter
    from ._stateful._addresses import (
        ASTFIPGen,
        ASTFIPGenDist,
        ASTFIPGenGlobal,
    )
    from ._stateful._association import (
        ASTFAssociation,
        ASTFAssociationRule,
    )
    from ._stateful._capture_info import (
        ASTFCapInfo,
        ASTFTCPInfo,
    )
    from ._stateful._client import ASTFClient
    from ._stateful._commands import (
        ASTFCmd,
        ASTFCmdAddStatsVal,
        ASTFCmdAddTickStats,
        ASTFCmdAddTickVar,
        ASTFCmdAddVal,
        ASTFCmdCloseMsg,
        ASTFCmdConnect,
        ASTFCmdDelay,
        ASTFCmdDelayRnd,
        ASTFCmdExecTemplate,
        ASTFCmdJMPCMP,
        ASTFCmdJMPDP,
        ASTFCmdJMPNZ,
        ASTFCmdKeepaliveMsg,
        ASTFCmdNoClose,
        ASTFCmdRecv,
        ASTFCmdRecvMsg,
        ASTFCmdReset,
        ASTFCmdSend,
        ASTFCmdSetTemplate,
        ASTFCmdSetTickVar,
        ASTFCmdSetVal,
        ASTFCmdTxMode,
        ASTFCmdTxPkt,
    )
    from ._stateful._errors import (
        ASTFError,
    )
    from ._stateful._profile import (
        ASTFProfile,
        ASTFProfileLight,
    )
    from ._stateful._program import (
        ASTFProgram,
    )
    from ._stateful._templates import (
        ASTFCluster,
        ASTFTCPClientTemplate,
        ASTFTCPOptions,
        ASTFTCPServerTemplate,
        ASTFTemplate,
    )
    from ._stateful._topology import ASTFTopology, TopoGW, TopoVIF
    from ._stateful._tunables import (
        ASTFGlobalInfo,
        ASTFGlobalInfoPerTemplate,
    )
    from ._stream import (
        STLFlowLatencyStats,
        STLFlowStats,
        STLStream,
        STLStreamDstMAC_ARP,
        STLStreamDstMAC_CFG_FILE,
        STLStreamDstMAC_PKT,
    )
    from ._vlan import VLAN
    from ._vm import (
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

    __version__: str

__all__ = [
    "STLVM",
    "VLAN",
    "ASTFAssociation",
    "ASTFAssociationRule",
    "ASTFCapInfo",
    "ASTFClient",
    "ASTFCluster",
    "ASTFCmd",
    "ASTFCmdAddStatsVal",
    "ASTFCmdAddTickStats",
    "ASTFCmdAddTickVar",
    "ASTFCmdAddVal",
    "ASTFCmdCloseMsg",
    "ASTFCmdConnect",
    "ASTFCmdDelay",
    "ASTFCmdDelayRnd",
    "ASTFCmdExecTemplate",
    "ASTFCmdJMPCMP",
    "ASTFCmdJMPDP",
    "ASTFCmdJMPNZ",
    "ASTFCmdKeepaliveMsg",
    "ASTFCmdNoClose",
    "ASTFCmdRecv",
    "ASTFCmdRecvMsg",
    "ASTFCmdReset",
    "ASTFCmdSend",
    "ASTFCmdSetTemplate",
    "ASTFCmdSetTickVar",
    "ASTFCmdSetVal",
    "ASTFCmdTxMode",
    "ASTFCmdTxPkt",
    "ASTFError",
    "ASTFGlobalInfo",
    "ASTFGlobalInfoPerTemplate",
    "ASTFIPGen",
    "ASTFIPGenDist",
    "ASTFIPGenGlobal",
    "ASTFProfile",
    "ASTFProfileLight",
    "ASTFProgram",
    "ASTFTCPClientTemplate",
    "ASTFTCPInfo",
    "ASTFTCPOptions",
    "ASTFTCPServerTemplate",
    "ASTFTemplate",
    "ASTFTopology",
    "CapturedPacket",
    "Event",
    "PacketBuffer",
    "PingRecord",
    "PortProfileID",
    "STLArgumentError",
    "STLClient",
    "STLConnectionError",
    "STLError",
    "STLFlowLatencyStats",
    "STLFlowStats",
    "STLIPRange",
    "STLPacketError",
    "STLPktBuilder",
    "STLProfile",
    "STLProfileError",
    "STLRpcError",
    "STLScVmRaw",
    "STLService",
    "STLServiceARP",
    "STLServiceDHCP",
    "STLServiceFilter",
    "STLServiceICMP",
    "STLServiceICMPv6",
    "STLServiceIPv6ND",
    "STLServiceIPv6Scan",
    "STLStream",
    "STLStreamDstMAC_ARP",
    "STLStreamDstMAC_CFG_FILE",
    "STLStreamDstMAC_PKT",
    "STLTXCont",
    "STLTXMultiBurst",
    "STLTXSingleBurst",
    "STLTimeoutError",
    "STLTypeError",
    "STLVmFixChecksumHw",
    "STLVmFixIcmpv6",
    "STLVmFixIpv4",
    "STLVmFlowVar",
    "STLVmFlowVarRepeatableRandom",
    "STLVmTrimPktSize",
    "STLVmTupleGen",
    "STLVmWrFlowVar",
    "STLVmWrMaskFlowVar",
    "ServiceContext",
    "ServicePipe",
    "TopoGW",
    "TopoVIF",
]

_HOMES = {
    "ASTFClient": "_stateful._client",
    "ASTFTopology": "_stateful._topology",
    "TopoGW": "_stateful._topology",
    "TopoVIF": "_stateful._topology",
    "ASTFIPGen": "_stateful._addresses",
    "ASTFIPGenDist": "_stateful._addresses",
    "ASTFIPGenGlobal": "_stateful._addresses",
    "ASTFAssociation": "_stateful._association",
    "ASTFAssociationRule": "_stateful._association",
    "ASTFCapInfo": "_stateful._capture_info",
    "ASTFTCPInfo": "_stateful._capture_info",
    "ASTFError": "_stateful._errors",
    "ASTFProfile": "_stateful._profile",
    "ASTFProfileLight": "_stateful._profile",
    "ASTFProgram": "_stateful._program",
    "ASTFCluster": "_stateful._templates",
    "ASTFTCPClientTemplate": "_stateful._templates",
    "ASTFTCPOptions": "_stateful._templates",
    "ASTFTCPServerTemplate": "_stateful._templates",
    "ASTFTemplate": "_stateful._templates",
    "ASTFGlobalInfo": "_stateful._tunables",
    "ASTFGlobalInfoPerTemplate": "_stateful._tunables",
    "CapturedPacket": "_packets",
    "Event": "_events",
    "PacketBuffer": "_packets",
    "PingRecord": "_services._ping_record",
    "PortProfileID": "_places",
    "STLClient": "_client",
    "STLIPRange": "_program",
    "STLPktBuilder": "_packet",
    "STLProfile": "_profile",
    "STLScVmRaw": "_program",
    "STLService": "_services._service",
    "STLServiceARP": "_services._arp",
    "STLServiceDHCP": "_services._dhcp",
    "STLServiceFilter": "_services._service",
    "STLServiceICMP": "_services._icmp",
    "STLServiceICMPv6": "_services._icmpv6",
    "STLServiceIPv6ND": "_services._nd",
    "STLServiceIPv6Scan": "_services._scan6",
    "STLVM": "_program",
    "ServiceContext": "_services._context",
    "ServicePipe": "_services._pipe",
    "VLAN": "_vlan",
}
_HOMES_BY_PREFIX = (
    ("STLTX", "_modes"),
    ("STLVm", "_vm"),
    ("STLFlow", "_stream"),
    ("STLStream", "_stream"),
    ("ASTFCmd", "_stateful._commands"),
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in __all__:
        raise AttributeError(f"module 'allosaur' has no attribute '{name}'")
    by_prefix = (home for prefix, home in _HOMES_BY_PREFIX if name.startswith(prefix))
    home = _HOMES.get(name) or next(by_prefix, "_errors")
    value = getattr(importlib.import_module(f"allosaur.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("allosaur")
    except PackageNotFoundError:
        # Run from a checkout that was not installed.
        return "0.0.0"
