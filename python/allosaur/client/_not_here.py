"""What TRex's ``STLClient`` has and ours does not."""

from __future__ import annotations

from .._not_here import explained

STATELESS_NAMES = explained(
    {
        "tagged packet groups come later; count streams by themselves, with flow_stats=STLFlowStats(pg_id) "
        "and get_pgid_stats()": (
            "clear_tpg_stats clear_tpg_tx_stats clear_tpg_unknown_tags disable_tpg enable_tpg get_tpg_stats "
            "get_tpg_status get_tpg_tags get_tpg_tx_stats get_tpg_unknown_tags show_tpg_stats "
            "show_tpg_status show_tpg_tags show_tpg_tx_stats show_tpg_unknown_stats tpg_clear_stats "
            "tpg_clear_tx_stats "
            "tpg_clear_unknown_stats tpg_disable tpg_enable tpg_status tpg_update update_tpg_tags"
        ),
        "an inner part of TRex's client; a client is ready when it is made, connect() begins anew": "init",
        "an inner part of TRex's client; connect(), disconnect() and is_connected() are for the connection, "
        "get_connection_info() tells where it goes": "conn ctx",
        "an inner part of TRex's client; methods check the state of ports themselves": "psv",
        'an inner part of TRex\'s client; get_stats() has it under "global"': "global_stats",
        "an inner part of TRex's client; use get_pgid_stats() and clear_pgid_stats()": "pgid_stats",
        "an inner part of TRex's client; use get_util_stats()": "util_stats",
        "an inner part of TRex's client; profiles of ports are always there": "is_dynamic",
    }
)
