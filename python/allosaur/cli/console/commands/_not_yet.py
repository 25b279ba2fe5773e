"""TRex's commands for parts that are not here: each says so."""

from __future__ import annotations

from allosaur.cli.console._command import ConsoleCommand, NotYet

_NODES = "emulated clients (`allosaur emu`) are hosts without a network namespace"
_GROUPS = "packet groups (flow_stats of streams) count what is tagged"


def of_streams() -> list[ConsoleCommand]:
    """Return those of stateless traffic."""
    names = {
        "tpg_enable": "Tagged Packet Group",
        "tpg_disable": "Tagged Packet Group",
        "tpg_status": "status of Tagged Packet Group",
        "tpg_update": "a tag of Tagged Packet Group",
        "tpg_tags": "tags of Tagged Packet Group",
        "tpg_stats": "counters of Tagged Packet Group",
        "tpg_clear_stats": "clear the counters of Tagged Packet Group",
        "tpg_tx_stats": "sent counters of Tagged Packet Group",
        "tpg_clear_tx_stats": "clear the sent counters of Tagged Packet Group",
        "tpg_show_unknown_tags": "unknown tags of Tagged Packet Group",
        "tpg_clear_unknown_tags": "clear the unknown tags of Tagged Packet Group",
    }
    return [NotYet(name, summary, _GROUPS) for name, summary in names.items()]


def of_both() -> list[ConsoleCommand]:
    """Return those of all consoles."""
    return [
        NotYet("ns", "nodes in network namespaces", _NODES),
    ]
