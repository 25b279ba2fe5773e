"""Allosaur: generate traffic, receive it, and say what was lost.

To talk to a server:
    STLClient, ASTFClient, PortProfileID, Event, CapturedPacket, PacketBuffer, NSCmds, NSCmd, NSCmdResult
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
    ASTFCluster, ASTFTCPOptions, TLS, HTTPClient, HTTPRequest, HTTPServer, HTTPRoute, HTTPValues,
    HTTPCounter, HTTPRandom, HTTPToken, HTTPValue, ASTFTopology, TopoVIF, TopoGW
To make the commands of its programs one by one:
    ASTFCmd, ASTFCmdSend, ASTFCmdRecv, ASTFCmdRecvUntilClose, ASTFCmdTxPkt, ASTFCmdRecvMsg,
    ASTFCmdKeepaliveMsg, ASTFCmdCloseMsg, ASTFCmdDelay, ASTFCmdDelayRnd, ASTFCmdReset,
    ASTFCmdNoClose, ASTFCmdConnect, ASTFCmdTxMode, ASTFCmdSetVal, ASTFCmdAddVal, ASTFCmdSetTickVar,
    ASTFCmdAddTickVar, ASTFCmdAddStatsVal, ASTFCmdAddTickStats, ASTFCmdJMPNZ, ASTFCmdJMPDP, ASTFCmdJMPCMP,
    ASTFCmdSetTemplate, ASTFCmdExecTemplate
To emulate hosts that speak their protocols:
    EMUClient, EMUProfile, EMUNamespaceObj, EMUNamespaceKey, EMUClientObj, EMUClientKey,
    Mac, Ipv4, Ipv6, HostPort
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
    from .client._client import STLClient
    from .client._node_commands import NSCmd, NSCmdResult, NSCmds
    from .client._places import PortProfileID
    from .emulation._client import EMUClient
    from .emulation._profile import (
        EMUClientKey,
        EMUClientObj,
        EMUNamespaceKey,
        EMUNamespaceObj,
        EMUProfile,
    )
    from .emulation._values import HostPort, Ipv4, Ipv6, Mac
    from .packets._buffer import CapturedPacket, PacketBuffer
    from .packets._vlan import VLAN
    from .rpc._events import Event
    from .services._arp import STLServiceARP
    from .services._context import ServiceContext
    from .services._dhcp import STLServiceDHCP
    from .services._icmp import STLServiceICMP
    from .services._icmpv6 import STLServiceICMPv6
    from .services._nd import STLServiceIPv6ND
    from .services._ping_record import PingRecord
    from .services._pipe import ServicePipe
    from .services._scan6 import STLServiceIPv6Scan
    from .services._service import STLService, STLServiceFilter
    from .stateful._addresses import (
        ASTFIPGen,
        ASTFIPGenDist,
        ASTFIPGenGlobal,
    )
    from .stateful._association import (
        ASTFAssociation,
        ASTFAssociationRule,
    )
    from .stateful._capture_info import (
        ASTFCapInfo,
        ASTFTCPInfo,
    )
    from .stateful._commands import (
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
        ASTFCmdRecvUntilClose,
        ASTFCmdReset,
        ASTFCmdSend,
        ASTFCmdSetTemplate,
        ASTFCmdSetTickVar,
        ASTFCmdSetVal,
        ASTFCmdTxMode,
        ASTFCmdTxPkt,
    )
    from .stateful._errors import (
        ASTFError,
    )
    from .stateful._http import HTTPClient, HTTPRequest, HTTPRoute, HTTPServer
    from .stateful._http_values import HTTPCounter, HTTPRandom, HTTPToken, HTTPValue, HTTPValues
    from .stateful._profile import (
        ASTFProfile,
        ASTFProfileLight,
    )
    from .stateful._program import (
        ASTFProgram,
    )
    from .stateful._templates import (
        ASTFCluster,
        ASTFTCPClientTemplate,
        ASTFTCPOptions,
        ASTFTCPServerTemplate,
        ASTFTemplate,
    )
    from .stateful._tls import (
        TLS,
    )
    from .stateful._topology import ASTFTopology, TopoGW, TopoVIF
    from .stateful._tunables import (
        ASTFGlobalInfo,
        ASTFGlobalInfoPerTemplate,
    )
    from .stateful.client._client import ASTFClient
    from .streams._modes import STLTXCont, STLTXMultiBurst, STLTXSingleBurst
    from .streams._packet import STLPktBuilder
    from .streams._profile import STLProfile
    from .streams._program import STLVM, STLIPRange, STLScVmRaw
    from .streams._stream import (
        STLFlowLatencyStats,
        STLFlowStats,
        STLStream,
        STLStreamDstMAC_ARP,
        STLStreamDstMAC_CFG_FILE,
        STLStreamDstMAC_PKT,
    )
    from .streams._vm import (
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
    "TLS",
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
    "ASTFCmdRecvUntilClose",
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
    "EMUClient",
    "EMUClientKey",
    "EMUClientObj",
    "EMUNamespaceKey",
    "EMUNamespaceObj",
    "EMUProfile",
    "Event",
    "HTTPClient",
    "HTTPCounter",
    "HTTPRandom",
    "HTTPRequest",
    "HTTPRoute",
    "HTTPServer",
    "HTTPToken",
    "HTTPValue",
    "HTTPValues",
    "HostPort",
    "Ipv4",
    "Ipv6",
    "Mac",
    "NSCmd",
    "NSCmdResult",
    "NSCmds",
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
    "ASTFClient": "stateful.client._client",
    "ASTFTopology": "stateful._topology",
    "TopoGW": "stateful._topology",
    "TopoVIF": "stateful._topology",
    "ASTFIPGen": "stateful._addresses",
    "ASTFIPGenDist": "stateful._addresses",
    "ASTFIPGenGlobal": "stateful._addresses",
    "ASTFAssociation": "stateful._association",
    "ASTFAssociationRule": "stateful._association",
    "ASTFCapInfo": "stateful._capture_info",
    "ASTFTCPInfo": "stateful._capture_info",
    "ASTFError": "stateful._errors",
    "ASTFProfile": "stateful._profile",
    "ASTFProfileLight": "stateful._profile",
    "ASTFProgram": "stateful._program",
    "ASTFCluster": "stateful._templates",
    "ASTFTCPClientTemplate": "stateful._templates",
    "ASTFTCPOptions": "stateful._templates",
    "ASTFTCPServerTemplate": "stateful._templates",
    "ASTFTemplate": "stateful._templates",
    "ASTFGlobalInfo": "stateful._tunables",
    "ASTFGlobalInfoPerTemplate": "stateful._tunables",
    "CapturedPacket": "packets._buffer",
    "EMUClient": "emulation._client",
    "HostPort": "emulation._values",
    "Ipv4": "emulation._values",
    "Ipv6": "emulation._values",
    "Mac": "emulation._values",
    "Event": "rpc._events",
    "NSCmd": "client._node_commands",
    "NSCmdResult": "client._node_commands",
    "NSCmds": "client._node_commands",
    "PacketBuffer": "packets._buffer",
    "PingRecord": "services._ping_record",
    "PortProfileID": "client._places",
    "STLClient": "client._client",
    "STLIPRange": "streams._program",
    "STLPktBuilder": "streams._packet",
    "STLProfile": "streams._profile",
    "STLScVmRaw": "streams._program",
    "STLService": "services._service",
    "STLServiceARP": "services._arp",
    "STLServiceDHCP": "services._dhcp",
    "STLServiceFilter": "services._service",
    "STLServiceICMP": "services._icmp",
    "STLServiceICMPv6": "services._icmpv6",
    "STLServiceIPv6ND": "services._nd",
    "STLServiceIPv6Scan": "services._scan6",
    "STLVM": "streams._program",
    "ServiceContext": "services._context",
    "ServicePipe": "services._pipe",
    "TLS": "stateful._tls",
    "HTTPClient": "stateful._http",
    "HTTPRequest": "stateful._http",
    "HTTPRoute": "stateful._http",
    "HTTPServer": "stateful._http",
    "HTTPCounter": "stateful._http_values",
    "HTTPRandom": "stateful._http_values",
    "HTTPToken": "stateful._http_values",
    "HTTPValue": "stateful._http_values",
    "HTTPValues": "stateful._http_values",
    "VLAN": "packets._vlan",
}
_HOMES_BY_PREFIX = (
    ("STLTX", "streams._modes"),
    ("STLVm", "streams._vm"),
    ("STLFlow", "streams._stream"),
    ("STLStream", "streams._stream"),
    ("ASTFCmd", "stateful._commands"),
    ("EMU", "emulation._profile"),
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
