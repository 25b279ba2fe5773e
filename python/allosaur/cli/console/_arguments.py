"""Arguments of TRex's console, by its names, and the ports that they mean."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any

from allosaur.cli._errors import CommandError, bad_input
from allosaur.cli._options import multiplier as multiplier_of
from allosaur.cli.console._session import Session

_YES, _NO = {"true", "yes", "on", "y", "t", "1"}, {"false", "no", "off", "n", "f", "0"}
_TIME_UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SERVICE = ("bgp", "dhcp", "mdns", "emu", "tran", "no-tcp-udp", "all")
_SERVICE_MASKS = {"no-tcp-udp": 1, "bgp": 2, "dhcp": 4, "tran": 8, "mdns": 16, "all": 255}
_EMULATION = ("dhcp", "mdns", "no-tcp-udp", "tran")


def ports_or_all(parser: argparse._ActionsContainer, short: bool = True, all_flag: bool = True) -> None:
    """Add `-p`/`--port` with any number of ports, and `-a` for all."""
    group = parser.add_mutually_exclusive_group() if isinstance(parser, argparse.ArgumentParser) else parser
    names = ("-p", "--port") if short else ("--port",)
    group.add_argument(
        *names, dest="ports", nargs="+", type=int, action="extend", metavar="PORT", help="ports"
    )
    if all_flag:
        group.add_argument("-a", dest="all_ports", action="store_true", help="all ports")


def port(parser: argparse.ArgumentParser) -> None:
    """Add `-p` of a command about one port."""
    parser.add_argument("-p", "--port", dest="port", type=int, required=True, metavar="PORT", help="the port")


def places(parser: argparse._ActionsContainer, all_flag: bool = False) -> None:
    """Add `-p` with ports or profiles of ports, `0` or `0.name`."""
    text = "ports, or profiles of ports as 0.name"
    names = ("-p", "--port", "--ports")
    parser.add_argument(*names, dest="ports", nargs="+", action="extend", metavar="PORT", help=text)
    if all_flag:
        parser.add_argument("-a", dest="all_ports", action="store_true", help="all profiles of all ports")


def file(parser: argparse.ArgumentParser, text: str = "the file") -> None:
    """Add `-f FILE`."""
    parser.add_argument("-f", dest="file", required=True, metavar="FILE", help=text)


def tunables(parser: argparse.ArgumentParser) -> None:
    """Add `-t`, which takes all words behind it."""
    parser.add_argument(
        *("-t", "--tunables"),
        dest="tunables",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="KEY=VALUE",
        help="values for the profile, key=value,... or --key value ...; last on the line",
    )


def duration(
    parser: argparse.ArgumentParser, name: str, default: float, text: str, dest: str = "duration"
) -> None:
    """Add a time: seconds, or with ms, m, h."""
    parser.add_argument(
        name, dest=dest, type=time_s, default=default, metavar="TIME", help=f"{text} (10, 500ms, 10m, 1h)"
    )


def multiplier(parser: argparse.ArgumentParser) -> None:
    """Add `-m` of streams."""
    parser.add_argument(
        *("-m", "--multiplier"),
        dest="mult",
        type=rate,
        default="1",
        metavar="RATE",
        help="a factor (2), a rate of each port (5mpps, 1gbps, 10gbpsl1) or a share of the line (40%%)",
    )


def stream_ids(parser: argparse.ArgumentParser) -> None:
    """Add `-i` with numbers of streams."""
    parser.add_argument(
        *("-i", "--id"), dest="ids", nargs="+", type=int, action="extend", metavar="ID", help="streams"
    )


def vlan(parser: argparse._ActionsContainer) -> None:
    """Add `--vlan` with one tag or two."""
    parser.add_argument(
        *("--vlan",), nargs="*", type=int, metavar="TAG", help="VLAN tag, or two with the outer first"
    )


def service(parser: argparse.ArgumentParser) -> None:
    """Add what service mode may be filtered by."""
    for name in _SERVICE:
        parser.add_argument(f"--{name}", action="store_true", help=f"filtered mode that lets {name} through")
    parser.add_argument("--off", dest="enabled", action="store_false", help="end service mode")


def service_fields(options: argparse.Namespace) -> dict[str, Any]:
    """Return what the options of `service` mean for the client."""
    given = [name for name in _SERVICE if getattr(options, name.replace("-", "_"))]
    mask = 0
    for name in given:
        for one in _EMULATION if name == "emu" else (name,):
            mask |= _SERVICE_MASKS[one]
    if not given or not options.enabled:
        return {"enabled": options.enabled}
    return {"enabled": True, "filtered": True, "mask": mask}


def rate(text: str) -> str:
    """Read a multiplier, which may end in + or - for what runs."""
    end = text[-1:] if text[-1:] in ("+", "-") else ""
    return multiplier_of(text.removesuffix(end)) + end


def time_s(text: str) -> float:
    """Read a time as TRex's console does: `10`, `10m`, `1h`; `500ms` and `-1`, forever, besides."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)(ms|s|m|h|)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write seconds, or 500ms, 10m, 1h")
    return float(match[1]) * _TIME_UNITS_S[match[2]]


def any_number(text: str) -> int:
    """Read a number as Python writes it, `33024` or `0x8100`."""
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number; write one such as 0x8100") from None


def yes_or_no(text: str) -> bool:
    """Read `true` or `false`, in the forms that TRex's console takes."""
    word = text.lower()
    if word not in _YES | _NO:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return word in _YES


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    """Return a reader that takes these words in any case."""

    def read(text: str) -> str:
        if text.lower() not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(names)}")
        return text.lower()

    return read


def chosen(session: Session, options: argparse.Namespace, default: Sequence[int] | None = None) -> list[int]:
    """Return the ports that `-p` and `-a` mean: those that exist. `default`, else those that are owned."""
    known = session.client.get_all_ports()
    if getattr(options, "all_ports", False):
        return known
    given: list[int] = list(dict.fromkeys(options.ports or []))
    for one in given:
        _check(one, known)
    if given:
        return given
    return list(default) if default is not None else session.client.get_acquired_ports()


def owned(session: Session, ports: Sequence[int]) -> list[int]:
    """Return these ports. Raises :class:`CommandError` for none, and for one that is not owned."""
    known, ours = session.client.get_all_ports(), session.client.get_acquired_ports()
    for one in ports:
        _check(one, known)
    foreign = [one for one in ports if one not in ours]
    if foreign or not ports:
        why = session.client.why_lost(foreign or None)
        lost = f" ({why})" if why else ""
        what = f"port {', '.join(map(str, foreign))} is not ours" if foreign else "no port is ours"
        again = f"acquire{' -p ' if foreign else ''}{' '.join(map(str, foreign))}{' --force' if why else ''}"
        raise CommandError(f"{what}{lost}: `{again}` takes it")
    return list(ports)


def chosen_places(
    session: Session, options: argparse.Namespace, default: Sequence[str] | None = None
) -> list[str]:
    """Return what `-p` and `-a` mean as `0` or `0.name`, of ports that are owned."""
    from allosaur import PortProfileID

    if getattr(options, "all_ports", False):
        given = [f"{one}.*" for one in session.client.get_acquired_ports()]
    else:
        given = list(dict.fromkeys(options.ports or []))
    if given:
        owned(session, [PortProfileID(one).port_id for one in given])
        return given
    return (
        list(default)
        if default is not None
        else [str(one) for one in owned(session, session.client.get_acquired_ports())]
    )


def asks_help(options: argparse.Namespace) -> bool:
    """Whether the tunables of a profile are asked for, by `-t -h`."""
    return bool({"-h", "--help"} & set(options.tunables))


def old_tunables(words: Sequence[str]) -> list[str]:
    """Return tunables as words of a command line, also those that are written `key=value,key=value`."""
    if not words or "=" not in words[0] or words[0].startswith("-"):
        return list(words)
    pairs = [pair.partition("=") for pair in words[0].split(",")]
    if not all(name and equals for name, equals, _ in pairs):
        raise bad_input(f"-t {words[0]}: write key=value, such as size=128")
    return [word for name, _, value in pairs for word in (f"--{name}", value.strip("'\""))] + list(words[1:])


def _check(one: int, known: Sequence[int]) -> None:
    if one not in known:
        raise bad_input(f"there is no port {one}; there are {', '.join(map(str, known))}")
