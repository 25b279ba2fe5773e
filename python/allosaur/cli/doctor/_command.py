"""`allosaur doctor`: looks in all places, and tells what it found."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable, Sequence

from allosaur.cli import _format
from allosaur.cli._errors import EXIT_OK, EXIT_SETUP, bad_input
from allosaur.cli._parser import nearest
from allosaur.cli.doctor import _cards, _cpus, _memory, _privileges, _server
from allosaur.cli.doctor._finding import IMPROVE, MISSING, OK, Finding
from allosaur.cli.doctor._kinds import INTERFACE, MEMORY, PortKind, names
from allosaur.cli.doctor._machine import Machine

_PLACES: tuple[Callable[[Machine], Finding], ...] = (
    _privileges.dpdk,
    _memory.locked_memory,
    _memory.open_files,
    _memory.hugepages,
    _cards.iommu,
    _cpus.cpus,
    _cpus.isolation,
    _cpus.numa,
    _cpus.governor,
    _cpus.clock,
    _cpus.steal,
)
_STYLES = {OK: "green", IMPROVE: "yellow", MISSING: "bold red"}
_NAME_WIDTH = 17
_INDENT = 9


def run(options: argparse.Namespace) -> int:
    """Look at the machine, and tell; return 0 when all that was asked for is there, else 3."""
    if not (options.root / "proc").is_dir():
        raise bad_input(
            f"--root {options.root}: there is no folder proc in it; name a folder with proc and sys"
        )
    machine = Machine(options.root, _server.find())
    wanted = _wanted(machine, options.kinds)
    findings = look(machine)
    missing = [one for one in findings if one.level(wanted) == MISSING]
    if options.json:
        print(json.dumps(_as_json(machine, findings, wanted), indent=2))
    else:
        print(_as_text(machine, findings, wanted))
    return EXIT_SETUP if missing else EXIT_OK


def look(machine: Machine) -> list[Finding]:
    """Return the findings of all places."""
    return [
        _privileges.server(machine),
        _privileges.kernel(machine),
        *_privileges.sockets(machine),
        *(place(machine) for place in _PLACES),
        *_cards.interfaces(machine),
    ]


def _wanted(machine: Machine, asked: list[str] | None) -> list[str]:
    """Return the kinds of ports that must work: unless asked otherwise, in memory and on interfaces."""
    kinds = names(machine.server.kinds)
    if unknown := [kind for kind in asked or () if kinds and kind not in kinds]:
        near = nearest(unknown[0], kinds) or f": there are {', '.join(kinds)}"
        raise bad_input(f"there is no value of --for '{unknown[0]}'{near}")
    return asked or [*names([*machine.kinds_on(MEMORY)[:1], *machine.kinds_on(INTERFACE)[:1]])]


def _working(kinds: Sequence[PortKind], findings: Sequence[Finding]) -> dict[str, bool]:
    """Return which kinds of ports would work."""
    wrong = [one for one in findings if one.why]
    broken = {kind for one in wrong for kind in one.breaks}
    return {kind: kind not in broken and not any(one.breaks_all for one in wrong) for kind in names(kinds)}


def _as_json(machine: Machine, findings: Sequence[Finding], wanted: Sequence[str]) -> dict[str, object]:
    kinds = machine.server.kinds
    levels = [one.level(wanted) for one in findings]
    checks = [
        {
            "name": one.name,
            "level": level,
            "found": one.found,
            "why": one.why or None,
            "commands": list(one.commands),
            "breaks": list(names(kinds) if one.breaks_all else one.breaks) if one.why else [],
        }
        for one, level in zip(findings, levels, strict=True)
    ]
    return {
        "command": "doctor",
        "ok": MISSING not in levels,
        "for": list(wanted),
        "ports": _working(kinds, findings),
        "checks": checks,
    }


def _as_text(machine: Machine, findings: Sequence[Finding], wanted: Sequence[str]) -> str:
    levels = [one.level(wanted) for one in findings]
    lines = [line for one, level in zip(findings, levels, strict=True) for line in _lines(one, level)]
    if machine.is_container:
        lines += ["", "This is a container: what concerns the kernel and CPUs is changed on its host."]
    works = [kind for kind, does in _working(machine.server.kinds, findings).items() if does]
    lines += ["", f"Ports that work: {', '.join(works) or 'none'}."]
    missing, better = levels.count(MISSING), levels.count(IMPROVE)
    if missing:
        summary = f"{_counted(missing, 'thing')} that ports of {' and '.join(wanted)} need"
    else:
        summary = f"all that ports of {' and '.join(wanted)} need is there"
    summary += f"; {_counted(better, 'thing')} could be better." if better else "."
    return "\n".join([*lines, _format.verdict(not missing, summary, ("OK", "MISSING"))])


def _lines(finding: Finding, level: str) -> list[str]:
    """Return a finding for people; commands stay on one line each, to be copied."""
    room = max(_format.width(), 40)
    head = f"{level:<{_INDENT}}{finding.name:<{_NAME_WIDTH}} "
    first, *more = textwrap.wrap(
        head + finding.found, room, subsequent_indent=" " * len(head), break_on_hyphens=False
    )
    lines = [_format.styled(level, _STYLES[level]) + first[len(level) :], *more]
    indent = " " * _INDENT
    if finding.why:
        lines += textwrap.wrap(
            f"why: {finding.why}.", room, initial_indent=indent, subsequent_indent=indent + " " * 5
        )
    return [*lines, *(f"{indent}  {command}" for command in finding.commands)]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
