"""Replies of the RPC: linux nodes.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import Any, TypedDict


class BatchTicket(TypedDict):
    """Reply of `conf_ns_batch` and of `get_ns_nodes`."""

    ticket_id: int
    """What its results are asked for by."""


class BatchProgress(TypedDict):
    """How far a batch is."""

    ticket_id: int
    """Its ticket."""
    total_cmds: int
    """Its commands."""
    exec_cmds: int
    """Those that were done."""
    errs_cmds: int
    """Those of them that failed."""


BatchResults = BatchProgress | list[Any]
"""Reply of `get_async_results`."""
