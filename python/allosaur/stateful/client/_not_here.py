"""What TRex's ``ASTFClient`` has and ours does not."""

from __future__ import annotations

from ..._not_here import explained
from ...client._not_here import STATELESS_NAMES

STATEFUL_NAMES = STATELESS_NAMES | explained(
    {
        "an inner part of TRex's client; get_port(number).state is the state of a port, "
        "get_profiles_state() those of profiles": "apply_port_states port_states",
        "an inner part of TRex's client; acquire() and release() say who owns the server": "handler",
        "an inner part of TRex's client; use get_traffic_stats() and clear_traffic_stats()": "traffic_stats",
        "an inner part of TRex's client; use get_latency_stats()": "latency_stats",
        "an inner part of TRex's client; use topo_load(), topo_get() and the other topo_*": "topo_mngr",
        "an inner part of TRex's client; use tunnels_topo_load(), tunnels_topo_get() and the other "
        "tunnels_topo_* methods": "tunnels_topo",
        "an inner part of TRex's client; use set_ignored_macs_ips() and get_ignored_macs_ips()": (
            "macs_ips_mngr"
        ),
        "an inner part of TRex's client; start() raises what the server says of a profile that fails": (
            "last_error last_profile_error"
        ),
        "an inner part of TRex's client; use wait_for_profile_state() and get_profiles_state()": (
            "profile_state_change sync_waiting"
        ),
    }
)
