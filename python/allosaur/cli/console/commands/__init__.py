"""The console's commands, one object each, in the order in which `help` lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from allosaur.cli._modes import STATEFUL
from allosaur.cli.console._command import ConsoleCommand, NotYet
from allosaur.cli.console._plugins import PlugIn
from allosaur.cli.console._session import Session
from allosaur.cli.console.commands import (
    _bird,
    _capture,
    _connection,
    _console,
    _dashboard,
    _emulation_list,
    _flow_stats,
    _flows,
    _neighbors,
    _nodes,
    _plugins,
    _ports,
    _stats,
    _streams,
    _topology,
    _traffic,
)

_OF_CONSOLE = (
    _console.Help(),
    _console.History(),
    _console.Verbose(),
    _console.Shell(),
    _console.Debug(),
    _console.Mode(),
    _dashboard.Tui(),
    _stats.Events(),
    _capture.Capture(),
    _traffic.Wait(),
    _console.Quit(),
)
_OF_BOTH = (
    _connection.Connect(),
    _connection.Disconnect(),
    _connection.Release(),
    _connection.Shutdown(),
    _connection.GlobalCfg(),
    _ports.PortAttr(),
    _ports.L2(),
    _ports.L3(),
    _ports.IPv6(),
    _ports.Vlan(),
    _ports.Vxlan(),
    _neighbors.Arp(),
    _neighbors.Ping(),
    _neighbors.Scan6(),
    _neighbors.Map(),
    _neighbors.Pkt(),
    _nodes.Ns(),
    _bird.Bird(),
)
_STATELESS = (
    _connection.Acquire(),
    _connection.Reset(),
    _ports.Service(),
    _stats.Stats(),
    _stats.Clear(),
    _traffic.Start(),
    _traffic.Stop(),
    _traffic.Update(),
    _traffic.Pause(),
    _traffic.Resume(),
    _traffic.Push(),
    _streams.Streams(),
    _streams.Profiles(),
)
_STATEFUL = (
    _connection.AcquireServer(),
    _connection.ResetServer(),
    _ports.ServiceOfAll(),
    _flows.Start(),
    _flows.Stop(),
    _flows.Update(),
    _flows.Profiles(),
    _flow_stats.Stats(),
    _flow_stats.Clear(),
    _flow_stats.TemplateGroup(),
    _flow_stats.Latency(),
    _topology.Topo(),
    _topology.TunnelsTopo(),
    _topology.Tunnel(),
    _topology.UpdateTunnel(),
    _topology.BlackList(),
    _flows.StartStl(),
    _flows.StopStl(),
    _flows.UpdateStl(),
    _flows.StatsStl(),
    _streams.Streams(),
)
_NOT_YET_STATELESS = tuple(
    NotYet(name, summary, "packet groups (flow_stats of streams) count what is tagged")
    for name, summary in (
        ("tpg_enable", "Tagged Packet Group"),
        ("tpg_disable", "Tagged Packet Group"),
        ("tpg_status", "status of Tagged Packet Group"),
        ("tpg_update", "a tag of Tagged Packet Group"),
        ("tpg_tags", "tags of Tagged Packet Group"),
        ("tpg_stats", "counters of Tagged Packet Group"),
        ("tpg_clear_stats", "clear the counters of Tagged Packet Group"),
        ("tpg_tx_stats", "sent counters of Tagged Packet Group"),
        ("tpg_clear_tx_stats", "clear the sent counters of Tagged Packet Group"),
        ("tpg_show_unknown_tags", "unknown tags of Tagged Packet Group"),
        ("tpg_clear_unknown_tags", "clear the unknown tags of Tagged Packet Group"),
    )
)
"""TRex's commands for parts that are not here: each says so."""
_EMULATION: dict[str, ConsoleCommand] = {**_emulation_list.all_commands()}
_ALIASES = {"quit": ("q", "exit", "EOF"), "history": ("h",)}


def of_session(session: Session) -> dict[str, ConsoleCommand]:
    """Return what may be typed in a console as it is now."""
    if session.settings.only_emulation:
        return _with_aliases([*_OF_CONSOLE, _plugins.Plugins(session.plugins), *_EMULATION.values()])
    emulation = _EMULATION if session.settings.emulation is not None else {}
    return {**of_mode(session.mode, session.plugins), **emulation}


def of_mode(mode: str | None, loaded: Mapping[str, PlugIn] | None = None) -> dict[str, ConsoleCommand]:
    """Return what may be typed while the console is in a mode, aliases last."""
    own = _STATEFUL if mode == STATEFUL else (*_STATELESS, *_NOT_YET_STATELESS)
    listed = [*_OF_CONSOLE, _plugins.Plugins(loaded), *_OF_BOTH, *own]
    return _with_aliases(listed)


def _with_aliases(listed: Sequence[ConsoleCommand]) -> dict[str, ConsoleCommand]:
    found: dict[str, ConsoleCommand] = {one.name: one for one in listed}
    aliases = {alias: found[name] for name, others in _ALIASES.items() for alias in others}
    return {**found, **aliases}
