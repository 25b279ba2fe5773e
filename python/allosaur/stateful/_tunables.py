"""Tunables: settings of TCP and IP for a whole profile, or for one template; their names and ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ._arguments import ipv6_octets, whole
from ._errors import ASTFError

_WORD_MAX = 65_533
_KIB, _GIB = 1 << 10, 1 << 30


class _UnknownTunable(ASTFError, AttributeError):
    """There is no such section or tunable."""


#: What a tunable takes: from the place, the name and the value to what the protocol carries.
_Reader = Callable[[str, str, Any], Any]


def _range(low: int, high: int) -> _Reader:
    return lambda where, name, value: whole(
        where, name, int(value) if isinstance(value, bool) else value, low, high
    )


_SWITCH = _range(0, 1)
_IPV6: dict[str, _Reader] = {"src_msb": ipv6_octets, "dst_msb": ipv6_octets, "enable": _SWITCH}
#: The server forces the lowest bit of the type of service to zero.
_IP: dict[str, _Reader] = {
    "tos": _range(0, 255),
    "ttl": _range(0, 255),
    "dont_use_inbound_mac": _SWITCH,
}
_TCP_OF_TEMPLATE: dict[str, _Reader] = {
    "mss": _range(1, 9216),
    "initwnd": _range(1, 20),
    "rxbufsize": _range(_KIB, _GIB),
    "txbufsize": _range(_KIB, _GIB),
    "no_delay": _range(0, 3),
    "no_delay_counter": _range(0, _WORD_MAX),
}
_TCP: dict[str, _Reader] = {
    **_TCP_OF_TEMPLATE,
    "rexmtthresh": _range(1, 10),
    "do_rfc1323": _SWITCH,
    "do_sack": _SWITCH,
    "do_ecn": _range(0, 2),
    "cc_algo": _SWITCH,
    "reass_maxqlen": _range(0, 1000),
    "keepinit": _range(2, _WORD_MAX),
    "keepidle": _range(2, _WORD_MAX),
    "keepintvl": _range(2, _WORD_MAX),
    "keepcnt": _range(1, 255),
    "blackhole": _range(0, 2),
    "delay_ack_msec": _range(20, 50_000),
}
_SCHEDULER: dict[str, _Reader] = {"rampup_sec": _range(3, 60_000)}


class Section:
    """The tunables of one section, as attributes. Raises ``ASTFError`` for what is not in its range."""

    def __init__(self, path: str, readers: Mapping[str, _Reader]) -> None:
        object.__setattr__(self, "_path", path)
        object.__setattr__(self, "_readers", readers)
        object.__setattr__(self, "_values", {})

    def __setattr__(self, name: str, value: Any) -> None:
        self._values[name] = self._reader(name)(self._path, name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        self._reader(name)
        if name not in self._values:
            raise AttributeError(f"{self._path}: {name} is not set")
        return self._values[name]

    def to_json(self) -> dict[str, Any]:
        """What was set, in the words of the protocol."""
        return dict(self._values)

    def _reader(self, name: str) -> _Reader:
        if name not in self._readers:
            known = ", ".join(self._readers)
            raise _UnknownTunable(f"{self._path} has no tunable '{name}', there are: {known}")
        reader: _Reader = self._readers[name]
        return reader


class _Tunables:
    """Sections of tunables."""

    _sections: ClassVar[Mapping[str, Mapping[str, _Reader]]] = {}

    def __init__(self) -> None:
        made = {
            name: Section(f"{type(self).__name__}.{name}", readers)
            for name, readers in self._sections.items()
        }
        object.__setattr__(self, "_made", made)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._made:
            known = ", ".join(self._made)
            raise _UnknownTunable(f"{type(self).__name__} has no section '{name}', there are: {known}")
        return self._made[name]

    def __setattr__(self, name: str, value: Any) -> None:
        section = getattr(self, name)
        known = ", ".join(section._readers)
        raise _UnknownTunable(f"{type(self).__name__}.{name} is a section: set one of its tunables, {known}")

    def to_json(self) -> dict[str, Any]:
        """The sections of which something was set."""
        written = {name: section.to_json() for name, section in self._made.items()}
        return {name: values for name, values in written.items() if values}


class ASTFGlobalInfo(_Tunables):
    """Tunables of one side of a profile: ``info.tcp.mss = 1400``.

    ``scheduler``: rampup_sec (3 to 60000 s). ``ip``: tos (0 to 255), ttl (0 to 127, 0 keeps it),
    dont_use_inbound_mac (0, 1). ``ipv6``: enable (0, 1), src_msb, dst_msb (an address, of which the last
    32 bits come from the pools). ``tcp``: mss (1 to 9216), initwnd (1 to 20 segments), rxbufsize and
    txbufsize (1 KiB to 1 GiB), no_delay (bit 0 no Nagle, bit 1 push always), no_delay_counter (0 to 65533
    bytes until an acknowledgment), rexmtthresh (1 to 10), do_rfc1323, do_sack (0, 1), do_ecn (0, 1
    active, 2 passive), cc_algo (0 NewReno, 1 CUBIC), reass_maxqlen (0 to 1000 segments), keepinit,
    keepidle, keepintvl (2 to 65533 s), keepcnt (1 to 65533), blackhole (0 resets always, 1 for SYNs only,
    2 never), delay_ack_msec (20 to 50000).
    """

    _sections: ClassVar = {"scheduler": _SCHEDULER, "ipv6": _IPV6, "tcp": _TCP, "ip": _IP}


class ASTFGlobalInfoPerTemplate(_Tunables):
    """Tunables of one side of a template: those of ``ASTFGlobalInfo`` that a template may have.

    ``ip`` and ``ipv6`` whole; of ``tcp`` mss, initwnd, rxbufsize, txbufsize, no_delay, no_delay_counter.
    """

    _sections: ClassVar = {"tcp": _TCP_OF_TEMPLATE, "ip": _IP, "ipv6": _IPV6}
