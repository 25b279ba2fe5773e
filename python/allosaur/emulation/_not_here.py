"""What TRex's ``EMUClient`` has and ours does not."""

from __future__ import annotations

from .._not_here import explained

EMULATION_NAMES = explained(
    {
        "emulated clients have no ports of their own; namespaces name the port of the traffic server "
        "(get_all_ns()), and STLClient or ASTFClient has its ports": "get_port get_port_count ports",
        "a server of emulated clients does not list its methods, TRex's neither; get_server_version() tells "
        "what it is": "get_server_supported_cmds",
        "a server of emulated clients says nothing of its machine, TRex's neither; get_server_version() "
        "tells what it is, get_counters() how it does": "get_server_system_info system_info",
        "an inner part of TRex's client; connect(), disconnect() and is_connected() are for the connection": (
            "conn ctx"
        ),
        "an inner part of TRex's client; get_counters(meta=True) tells what counters mean": "meta_data",
    }
)
