"""Keeps Scapy from asking the machine's network and its routes for what a packet leaves open.

Scapy fills an open MAC address with one that it asks the network for (ARP, neighbor discovery), an
open source address with that of a route, and looks up names of hosts. The packets of this package go
out of other ports, so the answers would be wrong, and a profile that only takes the length of a packet
would send ARP requests into a network where nobody expects them, and wait seconds for an answer.

Inside :func:`offline` Scapy asks nobody: open addresses are those that TRex has, and a name of a host is
an error. Elsewhere in a process that has loaded this, Scapy sends ARP and neighbor discovery only while
it sends packets itself (``sendp``, ``srp`` and the like), never when a packet is built or measured.

Imports no Scapy, since most programs of stateful profiles need none: what is changed in a module of Scapy is
changed as soon as that module is imported.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import socket
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .._errors import STLPacketError
from ._scapy_log import silence_routes

#: What a field gets that a packet leaves open, by the names of its layer and of itself: as with TRex.
ADDRESSES = {
    ("Ether", "dst"): "00:00:00:01:00:00",
    ("Ether", "src"): "00:00:00:02:00:00",
    ("IP", "src"): "16.0.0.1",
    ("IP", "dst"): "48.0.0.1",
    ("IPv6", "src"): "::2",
    ("IPv6", "dst"): "::1",
    ("ARP", "hwsrc"): "00:00:00:00:00:00",
    ("ARP", "psrc"): "16.0.0.1",
    ("ARP", "hwdst"): "00:00:00:00:00:00",
    ("ARP", "pdst"): "0.0.0.0",
}
_NO_MAC = "00:00:00:00:00:00"
_IPV4_SOURCE = "16.0.0.1"
_IPV6_SOURCE = "::2"

#: Modules of Scapy in which it sends packets itself.
_SENDING = ("scapy.sendrecv", "scapy.supersocket", "scapy.arch", "scapy.automaton", "scapy.ansmachine")

_is_offline: ContextVar[bool] = ContextVar("_is_offline", default=False)


@contextmanager
def offline() -> Iterator[None]:
    """Have Scapy ask nobody inside the block, in this thread."""
    guard()
    before = _is_offline.set(True)
    try:
        yield
    finally:
        _is_offline.reset(before)


def guard() -> None:
    """Change Scapy's modules, those that are loaded now and those that are loaded later."""
    silence_routes()
    missing = False
    for name, change in _CHANGES.items():
        module = sys.modules.get(name)
        if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
            missing = True
        else:
            _change(module, change)
    if missing and _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def _change(module: types.ModuleType, change: Callable[[Any], None]) -> None:
    if not getattr(module, "_allosaur_asks_nobody", False):
        module._allosaur_asks_nobody = True  # type: ignore[attr-defined]
        change(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Changes modules of Scapy once they are loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _CHANGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            loader = spec.loader
            load = loader.exec_module

            def load_and_change(module: types.ModuleType) -> None:
                load(module)
                _change(module, _CHANGES[fullname])

            loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec


_FINDER = _Finder()


def _change_base_classes(scapy: Any) -> None:
    original = scapy.Net.name2addr.__func__

    def name2addr(cls: Any, name: str) -> Any:
        if _is_offline.get():
            _refuse_name(cls.family, name)
            return name
        return original(cls, name)

    scapy.Net.name2addr = classmethod(name2addr)


def _refuse_name(family: int, name: str) -> None:
    """Refuse what is no address of this family. Raises ``STLPacketError``."""
    try:
        if family == socket.AF_INET:
            socket.inet_aton(name)
        else:
            socket.inet_pton(family, name)
    except (OSError, TypeError, ValueError):
        kind = "IPv4" if family == socket.AF_INET else "IPv6"
        raise STLPacketError(
            f"'{name}' is no {kind} address, and names of hosts are not looked up for packets: "
            "give an address"
        ) from None


def _change_fields(scapy: Any) -> None:
    for kind, address in ((scapy.SourceIPField, _IPV4_SOURCE), (scapy.SourceIP6Field, _IPV6_SOURCE)):
        for method in ("i2m", "i2h"):
            _fill(kind, method, address)
    original = scapy.IPField.resolve
    # With `conf.resolve` addresses are shown by the names that a name server has for them.
    scapy.IPField.resolve = lambda self, x: x if _is_offline.get() else original(self, x)


def _change_l2(scapy: Any) -> None:
    _fill(scapy.DestMACField, "i2m", _NO_MAC)
    # Until it is built, an open destination is shown as none: the program that builds it may fill it in.
    for method in ("i2h", "i2m"):
        _fill(scapy.SourceMACField, method, _NO_MAC)
    _ask_nobody(scapy, "srp1")
    resolve = scapy.Neighbor.resolve

    @functools.wraps(resolve)
    def resolve_if_sending(self: Any, l2inst: Any, l3inst: Any) -> Any:
        if type(l2inst).__name__ != "Ether" or _scapy_sends():
            return resolve(self, l2inst, l3inst)
        return ADDRESSES["Ether", "dst"]

    scapy.Neighbor.resolve = resolve_if_sending


def _change_inet6(scapy: Any) -> None:
    _ask_nobody(scapy, "srp1")
    original = scapy.IP6ListField.i2m

    @functools.wraps(original)
    def i2m(self: Any, pkt: Any, x: Any) -> Any:
        if _is_offline.get():
            for address in x:
                _refuse_name(socket.AF_INET6, address)
        return original(self, pkt, x)

    scapy.IP6ListField.i2m = i2m


def _fill(kind: Any, method: str, address: str) -> None:
    """Have a method of a field's class take a fixed address instead of asking for one."""
    original = getattr(kind, method)

    @functools.wraps(original)
    def filled(self: Any, pkt: Any, x: Any) -> Any:
        if x is None and pkt is not None and _is_offline.get():
            x = ADDRESSES.get((type(pkt).__name__, self.name), address)
        return original(self, pkt, x)

    setattr(kind, method, filled)


def _ask_nobody(scapy: Any, function: str) -> None:
    """Have a function that a module sends questions by answer at once that nobody answered."""
    original = getattr(scapy, function)

    @functools.wraps(original)
    def ask(*args: Any, **kwargs: Any) -> Any:
        return None if _is_offline.get() else original(*args, **kwargs)

    setattr(scapy, function, ask)


def _scapy_sends() -> bool:
    """Whether Scapy builds a packet because it sends it itself."""
    if _is_offline.get():
        return False
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_SENDING):
            return True
        frame = frame.f_back
    return False


_CHANGES: dict[str, Callable[[Any], None]] = {
    "scapy.base_classes": _change_base_classes,
    "scapy.fields": _change_fields,
    "scapy.layers.l2": _change_l2,
    "scapy.layers.inet6": _change_inet6,
}
