"""Names and modules of TRex's client that this package does not have, and what each is for."""

from __future__ import annotations

_TAGGED = "tagged packet groups come later"
_HLT = "the commands of the high-level traffic API come later; its streams are there (STLHltStream)"
_NAMESPACES = "a table of TRex's console; ask for the counters with NSCmds.counters_get_values()"
_BUILDING = "an inner part of TRex's packet builder; use STLPktBuilder and STLVM"
_CONSOLE = "a part of TRex's console"
_INNER = "an inner part of TRex's client; use the methods of STLClient or ASTFClient"
_STATEFUL = "an inner part of TRex's stateful client; use ASTFProfile and its parts"
_OLD = "a name of the old Scapy or Python that TRex's client carries"
_TEXT = "text of TRex's console; use a library such as rich"

_FEATURES: dict[str, str] = {
    _TAGGED: "STLTaggedPktGroup STLTaggedPktGroupTagConf TPGState",
    _HLT: (
        "CStreamsPerPort CTRexHltApi HLT_ERR HLT_OK check_res cleanup_session_kwargs connect_kwargs error "
        "print_brief_stats traffic_control_kwargs traffic_stats_kwargs wait_with_progress"
    ),
    _NAMESPACES: "CNsStats",
    _BUILDING: (
        "CTRexScFieldRangeBase CTRexScFieldRangeValue CTRexScIpv4SimpleRange CTRexScIpv4TupleGen "
        "CTRexScTrimPacketSize CTRexScapyPktUtl CTRexScriptsBase CTRexVmDescBase CTRexVmEngine "
        "CTRexVmInsBase CTRexVmInsFixIcmpv6 CTRexVmInsFixIpv4 CTRexVmInsFlowVar "
        "CTRexVmInsFlowVarRandLimit CTRexVmInsTrimPktSize CTRexVmInsTupleGen CTRexVmInsWrFlowVar "
        "CTRexVmInsWrMaskFlowVar CTrexPktBuilderInterface Graph PCAPReader STLFlowStatsInterface "
        "STLTXMode check_for_int convert_val convert_val_list default_STLStream get_max_by_size "
        "valid_fv_cycle valid_fv_init valid_fv_min_max valid_fv_ops valid_fv_size valid_fv_var_sizes"
    ),
    _CONSOLE: "TRexConsoleError TRexConsoleNoAction console_api parsing_opts ",
    _INNER: (
        "ServiceIPv6 "
        "ASTFPort ArgVerify CPgIdStats Connection Event GlobalStats LRU_cache Logger PSV_ACQUIRED "
        "PSV_IDLE PSV_L3 PSV_NON_SERVICE PSV_PAUSED PSV_RESOLVED PSV_SERVICE PSV_TX PSV_UP Pkt PktRX "
        "PortStateValidator PortStatsSum Profiler_Context RC RC_ERR RC_OK RC_WARN STLPort "
        "ScreenLogger StatsBatch TRexClient TRexCtx TXBuffer UtilStats BoundClass client_api "
        "validate_port_input simpy DHCPParser parser ipv4_num_to_str MacsIpsMngr "
        "set_window_always_on_top pretty_exceptions "
        "correct_direction correct_macs correct_sizes generate_packet get_TOS is_true merge_kwargs "
        "packet_cache split_vlan_arg split_vlan_args vlan_in_args format_error"
    ),
    _STATEFUL: (
        "ASTFCmdAddStatsBase ASTFCmdJMPBase ASTFCmdSetTickValBase ASTFCmdSetValBase "
        "ASTFGlobalInfoBase ASTFIPGenDistCache ASTFProfileCache ASTFProgramCache ASTFTemplateCache "
        "ASTFTopologyManager BufferList CAstfLatencyStats CAstfTrafficStats DST_IPv4 DST_IPv6 DST_MAC "
        "MAX_VIF_ID TunnelsTopo astf_states pcap_reader split_port_str ArgumentParser"
    ),
    _TEXT: (
        "FUNC_DICT TRexTextTable TextCodesStripper bcolors fit_arr print_table_with_header text_tables   "
    ),
    _OLD: (
        "DNSSEC_CLASSES GLOBKEYS IGNORED IFF_BROADCAST IFF_DEBUG IFF_LOOPBACK IFF_NOARP "
        "IFF_NOTRAILERS IFF_POINTOPOINT IFF_PROMISC IFF_RUNNING IFF_UP IPPROTO_IPIP "
        "ISAKMPTransformTypes LOOPBACK_NAME MATPLOTLIB MATPLOTLIB_DEFAULT_PLOT_KARGS "
        "MATPLOTLIB_INLINED NetflowV9TemplateFieldDecoders NetflowV9TemplateFieldDefaultLengths "
        "PACKET_ADD_MEMBERSHIP PACKET_BROADCAST PACKET_DROP_MEMBERSHIP PACKET_FASTROUTE PACKET_HOST "
        "PACKET_KERNEL PACKET_LOOPBACK PACKET_MR_ALLMULTI PACKET_MR_MULTICAST PACKET_MR_PROMISC "
        "PACKET_MULTICAST PACKET_OTHERHOST PACKET_OUTGOING PACKET_RECV_OUTPUT PACKET_RX_RING "
        "PACKET_STATISTICS PACKET_USER RTF_REJECT RTF_UP SESSION SIOCGIFADDR SIOCGIFCONF SIOCGIFCOUNT "
        "SIOCGIFFLAGS SIOCGIFINDEX SIOCGIFNAME SIOCGIFNETMASK SIOCGSTAMP SIOCSIFFLAGS SIOCSIFLINK "
        "absolute_import base_classes bpf common iana_enterprise_num linux manuf_path "
        "mldv2_group_types plt print_function six viewitems imp"
    ),
}

#: A name, and what it belongs to.
NAMES = {name: what for what, names in _FEATURES.items() for name in names.split()}
_ALSO_STARRED = (
    "ASTFCmdAddStatsBase ASTFCmdJMPBase ASTFCmdSetTickValBase ASTFCmdSetValBase ASTFIPGenDistCache "
    "ASTFProfileCache ASTFProgramCache ASTFTemplateCache ASTFTopologyManager ArgVerify BufferList DST_IPv4 "
    "DST_IPv6 DST_MAC FUNC_DICT LRU_cache Logger MAX_VIF_ID Profiler_Context RC RC_ERR RC_OK RC_WARN "
    "TRexConsoleError TRexConsoleNoAction TRexTextTable TextCodesStripper pcap_reader pretty_exceptions "
    "print_table_with_header set_window_always_on_top split_port_str"
)
#: Those that the star of TRex has; ``from trex.stl.api import *`` gives them, too.
STARRED = [
    *(name for what in (_TAGGED, _NAMESPACES, _BUILDING, _OLD) for name in _FEATURES[what].split()),
    *_ALSO_STARRED.split(),
]
#: Those of the high-level traffic API, for the star of its module.
HLT = _FEATURES[_HLT].split()

_WIRELESS = "access points and wireless clients are not planned"
_MODULE = "an inner part of TRex's client; use the methods of STLClient or ASTFClient"
_TOOL = "a program of TRex; `allosaur --help` lists ours"
_SIMULATOR = "the simulator is `allosaur sim`"

#: A module with all below it, and what it is. The first that fits counts.
MODULES = {
    "trex.emu.sim": _SIMULATOR,
    "trex.emu.emu_plugins": "an inner part of TRex's client; use client.arp, client.icmp and so on",
    "trex.emu.trex_emu_conn": "an inner part of TRex's client; use the methods of EMUClient",
    **dict.fromkeys(
        [f"trex.emu.trex_emu_ipfix_{name}" for name in ("fields", "generators", "json_config", "profile")],
        "helpers to write settings of IPFIX come later; write them as a dictionary",
    ),
    "trex.emu.trex_emu_ipfix_ppack_taxonomy": "names of applications by Cisco's NBAR are not shipped",
    "trex.emu.trex_emu_validator": "an inner part of TRex's client; the methods check their arguments",
    "trex.wireless": _WIRELESS,
    "trex.common.services.trex_service_ap": _WIRELESS,
    "trex.stl.trex_stl_wlc": _WIRELESS,
    "trex.stl.trex_stl_sim": _SIMULATOR,
    "trex.astf.sim": _SIMULATOR,
    "trex.astf.sim_utl": _SIMULATOR,
    "trex.examples": (
        "its examples are TRex's scripts; they are found in a copy of its repository, when the folder that "
        "has trex/examples is in PYTHONPATH behind Allosaur, or a script in it runs"
    ),
    "trex.pybird_server": "the server of BIRD is `allosaur server --bird-server`",
    "trex.common.trex_ns": _NAMESPACES,
    "trex.scapy_server": _TOOL,
    "trex.cmds_server": _TOOL,
    "trex.console": _TOOL,
}
#: Inner modules of TRex's client, each with all below it.
MODULES |= {
    f"trex.{name}": _MODULE
    for name in (
        *("astf.arg_verify", "astf.cap_handling", "astf.ignored_ips_macs", "astf.stats"),
        *("astf.trex_astf_port", "astf.tunnels_topo", "common.services.trex_dhcp_parser"),
        *("common.services.trex_service_fast_parser", "common.stats", "common.trex_api_annotators"),
        *("common.trex_conn", "common.trex_ctx", "common.trex_events", "common.trex_logger"),
        *("common.trex_port", "common.trex_psv", "common.trex_req_resp_client", "common.trex_subscriber"),
        *("stl.trex_stl_packet_builder_interface", "stl.trex_stl_port", "stl.trex_stl_stats"),
        *("utils.GAObjClass", "utils.constants", "utils.filters", "utils.parsing_opts", "utils.pcap"),
        *("utils.text_tables", "utils.zipmsg"),
    )
}
