"""The options of TRex's `t-rex-64`, and what each of them does here.

The table is the one source: the launcher reads command lines by it, `--help` and the guide show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from allosaur.cli._errors import bad_input


class Effect(Enum):
    """What an option does."""

    APPLIED = "applied"
    """It does what it does in TRex."""
    SO_ANYWAY = "so anyway"
    """What it asks for is always so here."""
    NOTHING = "nothing"
    """It is named in a warning."""
    REFUSED = "refused"
    """It is an error: what it asks for is not there."""


@dataclass(frozen=True)
class Option:
    """One option: its names, the name of its argument (empty when it has none), its effect and why."""

    names: tuple[str, ...]
    argument: str
    effect: Effect
    meaning: str


_BATCH = "of TRex's first stateful mode, which is not here"
_HELPERS = "there is no such helper"
_OFFLOADS = "there are no offloads to switch off"
_DRIVERS = "drivers need no switch"


def _applied(names: str, argument: str, meaning: str) -> Option:
    return Option(tuple(names.split()), argument, Effect.APPLIED, meaning)


def _so_anyway(names: str, argument: str, meaning: str) -> list[Option]:
    return [Option((name,), argument, Effect.SO_ANYWAY, meaning) for name in names.split()]


def _nothing(names: str, argument: str, meaning: str) -> list[Option]:
    return [Option((name,), argument, Effect.NOTHING, meaning) for name in names.split()]


def _refused(names: str, argument: str, meaning: str) -> Option:
    return Option(tuple(names.split()), argument, Effect.REFUSED, meaning)


OPTIONS: tuple[Option, ...] = (
    _applied("-h -? --help", "", "shows this"),
    _applied("-i", "", "starts the server, for clients; this or -f is needed"),
    _applied("--stl", "", "with -i: for streams (so it is without --astf)"),
    _applied("--astf", "", "for stateful traffic: with -i a server, with -f one run"),
    _applied("-f", "FILE", "with --astf: runs this stateful profile, and ends"),
    _applied("-m", "FACTOR", "with -f: what the flows a second of the profile are multiplied by (1)"),
    _applied("-d", "SECONDS", "with -f: how long (3600)"),
    _applied("-l", "PPS", "with -f: measures latency beside, with so many packets a second"),
    _applied("-t", "TUNABLES", "with -f: values for the profile, key=value with commas"),
    _applied("--nc", "", "with -f: ends at once, and leaves open flows as they are"),
    _applied("--ipv6", "", "with -f: uses IPv6, by the profile's tunables for it"),
    _applied("--astf-server-only", "", "with -f: opens no flows, only serves those that come"),
    _applied("--astf-client-mask", "MASK", "with -f: the client ports that open flows, bit by bit"),
    _applied("--cfg", "FILE", "the configuration file (/etc/trex_cfg.yaml), in TRex's form or ours"),
    _applied("-c", "N", "threads that send, for each two ports"),
    _applied("-s", "", "one thread that sends"),
    _applied("--limit-ports", "N", "use the first ports only, so many"),
    _applied("--iom", "N", "0: no table of counters; 1 and 2: a table every second (1)"),
    _applied("-v", "N", "how much the server tells on its error stream: from 3 on, everything"),
    _applied("--sleeps", "", "threads sleep when idle"),
    _applied("--prom", "", "ports take all frames, until a client switches promiscuous mode off"),
    _applied("--emu", "", "emulated clients, whose requests come on TCP port 4510"),
    _applied("--bird-server", "", "BIRD, whose requests come on TCP port 4509"),
    _applied("--emu-zmq", "", "an emulation server of another process, by files in /tmp"),
    _applied("--emu-zmq-tcp", "", "the same by TCP ports 4511 and 4512"),
    _applied("--allow-coredump", "", "allows a core dump"),
    *_so_anyway("--hdrh", "", "latency always comes with its histogram"),
    *_so_anyway("--software --no-hw-flow-stat", "", "streams are always counted in software"),
    *_so_anyway("--prefix", "NAME", "several servers share nothing but TCP ports; the file says which"),
    *_so_anyway("--no-watchdog", "", "no watchdog ends the server"),
    *_so_anyway("--no-key --no-termio", "", "the server reads no keys"),
    *_so_anyway("--no-scapy-server", "", "there is no Scapy server"),
    *_so_anyway("--no-flow-control-change", "", "flow control of ports stays as it is"),
    *_so_anyway("--checksum-offload-disable --tso-disable --lro-disable", "", _OFFLOADS),
    *_so_anyway("--no-ofed-check --ignore-528-issue", "", _DRIVERS),
    *_so_anyway("--mlx4-so --mlx5-so --ntacc-so --bnxt-so --mana-so", "", _DRIVERS),
    *_so_anyway("--disable-ieee-1588", "", "times are always taken in software"),
    _refused("--ut", "", "there are no tests in this program"),
    _refused("--dump-interfaces", "LIST", "`allosaur ports` lists the interfaces"),
    *_nothing("-k -w", "N", _BATCH),
    *_nothing("-p -e --lo --flip --pcap --vlan --learn --learn-verify --close-at-end", "", _BATCH),
    *_nothing("--learn-mode --l-pkt-mode --rx-check --hops --active-flows", "N", _BATCH),
    *_nothing("--client_cfg --client-cfg", "FILE", _BATCH),
    *_nothing("--astf-emul-debug", "", "there is no such view"),
    *_nothing("--lm", "MASK", "ports that shall not send are not started by clients"),
    *_nothing("-pm", "N", "the table has one form"),
    *_nothing("-pubd", "", "events are always published"),
    *_nothing("--scapy-server", "", _HELPERS),
    *_nothing("--rpc-logfile", "FILE", "requests are not logged to a file; -v 3 tells of them"),
    *_nothing("--arp-refresh-period", "SECONDS", "addresses are announced every 120 s"),
    *_nothing("--limit-arp-request", "N", "ports ask for their gateway until it answers"),
    *_nothing("--send-debug-pkt", "N", "there are no debug packets; `allosaur push` sends packets"),
    *_nothing("--mbuf-factor", "N", "memory needs no size"),
    *_nothing("--x710-reset-threshold", "N", _DRIVERS),
    *_nothing("--unbind-unused-ports", "", "no port is bound or unbound"),
    *_nothing(
        "--checksum-offload --queue-drop --defer-start-queues", "", "cards are not driven directly yet"
    ),
    *_nothing("--latency-diag", "", "there is no such diagnosis"),
    *_nothing("--rt", "", "threads have the priority that they were started with"),
)
"""All options of TRex's launcher."""

_BY_NAME = {name: option for option in OPTIONS for name in option.names}


def read(words: Sequence[str]) -> list[tuple[str, Option, str]]:
    """Return the options of a command line as (name, option, argument), in their order.

    Raises the error for wrong input when there is an unknown option, or an argument too much or too little.
    """
    found: list[tuple[str, Option, str]] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, argument = word.partition("=")
        option = _BY_NAME.get(name)
        if option is None:
            what = "an option" if word.startswith("-") else "an argument"
            raise bad_input(f"'{word}' is not {what} of t-rex-64 (see t-rex-64 --help)")
        if option.argument and not equals:
            if not left:
                raise bad_input(f"{name}: an argument is missing: {name} {option.argument}")
            argument = left.pop(0)
        if not option.argument and equals:
            raise bad_input(f"{name}: takes no argument, but was given '{argument}'")
        found.append((name, option, argument))
    return found


def warning(found: Sequence[tuple[str, Option, str]]) -> str:
    """Return one line that names the options that do nothing, with the reasons; empty when there are none."""
    by_reason: dict[str, list[str]] = {}
    for name, option, _ in found:
        if option.effect is Effect.NOTHING:
            names = by_reason.setdefault(option.meaning, [])
            if name not in names:
                names.append(name)
    if not by_reason:
        return ""
    groups = [f"{', '.join(names)} ({reason})" for reason, names in by_reason.items()]
    return f"warning: these options do nothing here: {'; '.join(groups)}"


def help_text() -> str:
    """Return what `--help` prints."""
    lines = [
        "usage: t-rex-64 -i [--stl | --astf] [OPTIONS]",
        "       t-rex-64 --astf -f PROFILE.py -m FACTOR -d SECONDS [OPTIONS]",
        "",
        "Starts Allosaur's server as TRex's launcher starts TRex's: with TRex's configuration file,",
        "for all clients that can reach this machine. `allosaur server --help` shows our own way.",
    ]
    headings = {
        Effect.APPLIED: "Options that do what they do in TRex:",
        Effect.SO_ANYWAY: "Options for what is always so here:",
        Effect.NOTHING: "Options that do nothing here, which a warning names:",
        Effect.REFUSED: "Options that are refused:",
    }
    for effect, heading in headings.items():
        lines += ["", heading]
        for option in OPTIONS:
            if option.effect is effect:
                spelled = f"{', '.join(option.names)} {option.argument}".rstrip()
                lines.append(f"  {spelled:<28} {option.meaning}")
    return "\n".join(lines)
