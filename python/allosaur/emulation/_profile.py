"""What to emulate: a profile of namespaces, each with its clients, and the plugins at each level.

    key = EMUNamespaceKey(vport=0, tci=100, tpid=0x8100)
    hosts = [EMUClientObj(mac=Mac("00:00:00:70:00:01")[i].V(), ipv4=Ipv4("16.0.0.1")[i]) for i in range(9)]
    profile = EMUProfile(EMUNamespaceObj(key, hosts, plugs={"arp": {}}, def_c_plugs={"arp": {}, "icmp": {}}))

A client or a namespace without plugins of its own gets the defaults of what it is in.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from .._errors import STLArgumentError, STLError, STLTypeError
from . import _check, _loader
from ._values import EMUType, Ipv4, Ipv6, Mac

Plugs = dict[str, Any]
_Part = TypeVar("_Part")

_PORT_MAX = 0xFFFF
_TAG_MAX = {"tci": 4_095, "tpid": 0xFFFF}
_TAGS_MAX = 2
_GROUP_BIT = 1
"""In the first byte of a MAC address: it is one of a group (IEEE 802, 8.2.2)."""
_NO_TAGS = [0, 0]
_USUAL_TPID = 0x8100

#: The keys of a client that are addresses.
ADDRESSES: dict[str, type[EMUType]] = {
    **dict.fromkeys(("mac", "ipv4_force_mac", "ipv6_force_mac"), Mac),
    **dict.fromkeys(("ipv4", "ipv4_dg"), Ipv4),
    **dict.fromkeys(("ipv6", "dg_ipv6"), Ipv6),
}


def _plugs(value: object) -> object:
    if type(value) is not dict:
        _check.optional("plugs", value, dict)
    return value


def _as_given(value: object) -> object:
    return value


#: What makes the value of each key of a client.
_KINDS: dict[str, Callable[[Any], Any]] = {
    **ADDRESSES,
    **dict.fromkeys(("ipv4_mtu", "ipv4_force_dg", "ipv6_force_dg"), _as_given),
    "plugs": _plugs,
}
CLIENT_KEYS = tuple(_KINDS)


class EMUNamespaceKey:
    """Where a namespace is: a port, with up to two VLAN tags (`tci`, and their types, `tpid`)."""

    def __init__(
        self,
        vport: int,
        tci: int | list[int] | None = None,
        tpid: int | list[int] | None = None,
        **_others: object,
    ) -> None:
        self.vport = _check.within("vport", vport, 0, _PORT_MAX)
        self.tci = _tags("tci", [*_NO_TAGS] if tci is None else tci)
        self.tpid = _tags("tpid", [0] * len(self.tci) if tpid is None else tpid)
        if not any(self.tpid):
            return
        if self.tci == _NO_TAGS:
            raise STLArgumentError(
                "tpid", tpid, "a tci as well, or leave it out: there is no tag to be of it"
            )
        if len(self.tci) != len(self.tpid):
            raise STLArgumentError("tpid", tpid, f"as many as there are tags in tci, which is {self.tci}")
        if any(kind and not tag for tag, kind in zip(self.tci, self.tpid, strict=True)):
            raise STLArgumentError("tpid", tpid, f"0 where tci has no tag; tci is {self.tci}")

    def conv_to_dict(self, add_tunnel_key: bool = False) -> dict[str, Any]:
        """The key as the server wants it; with `add_tunnel_key` under the name "tun"."""
        key = {"vport": self.vport, "tci": self.tci, "tpid": self.tpid}
        return {"tun": key} if add_tunnel_key else key

    def _identity(self) -> tuple[int, ...]:
        tags = (self.tci + _NO_TAGS)[:_TAGS_MAX]
        kinds = (self.tpid + _NO_TAGS)[:_TAGS_MAX]
        # The server says the usual type of a tag that was given without one.
        known = [(kind or _USUAL_TPID) if tag else 0 for tag, kind in zip(tags, kinds, strict=True)]
        return (self.vport, *tags, *known)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EMUNamespaceKey) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __str__(self) -> str:
        tags = ", ".join(str(tag) for tag in self.tci if tag)
        return f"port {self.vport}{f', VLAN {tags}' if tags else ''}"

    def __repr__(self) -> str:
        return f"EMUNamespaceKey(vport={self.vport}, tci={self.tci}, tpid={self.tpid})"


class EMUClientKey:
    """Which client: its namespace, and its MAC address."""

    def __init__(self, ns_key: EMUNamespaceKey, mac: object) -> None:
        _check.kind("ns_key", ns_key, EMUNamespaceKey)
        self.ns_key = ns_key
        self.mac = Mac(mac)

    def conv_to_dict(self, add_ns: bool = False, to_bytes: bool = False) -> dict[str, Any]:
        """The key as a dictionary; `to_bytes` and with its namespace as the server wants it."""
        key = self.ns_key.conv_to_dict(add_tunnel_key=True) if add_ns else {}
        return {**key, "mac": self.mac.V() if to_bytes else self.mac.S()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EMUClientKey) and (self.ns_key, self.mac) == (other.ns_key, other.mac)

    def __hash__(self) -> int:
        return hash((self.ns_key, self.mac))

    def __repr__(self) -> str:
        return f"EMUClientKey({self.ns_key!r}, '{self.mac.S()}')"


class EMUClientObj:
    """A client: its MAC address, and by name what else it has.

    `ipv4`, `ipv4_dg`, `ipv4_mtu`, `ipv6`, `dg_ipv6`, `plugs`; and `ipv4_force_dg` with `ipv4_force_mac` (as
    `ipv6_force_dg`, `ipv6_force_mac`) for a gateway that is not asked for its MAC address. Addresses are
    lists of bytes, text, or `Mac`, `Ipv4` and `Ipv6`. Each is an attribute of the same name.
    """

    __slots__ = ("_given",)

    def __init__(self, mac: object, **kwargs: Any) -> None:
        own = mac._bytes if type(mac) is Mac else Mac.read(mac)
        if own[0] & _GROUP_BIT:
            raise _of_group(own)
        # Clients come by the hundred thousand: addresses are kept as bytes, which the collector of garbage
        # never looks at.
        given: dict[str, Any] = {"mac": own}
        name = ""
        try:
            for name, value in kwargs.items():
                kind = _KINDS[name]
                if type(value) is kind:
                    given[name] = value._bytes
                elif name in ADDRESSES:
                    given[name] = ADDRESSES[name].read(value)
                else:
                    given[name] = kind(value)
        except KeyError:
            raise _unknown_key(name) from None
        except STLError as error:
            raise STLError(f"client {Mac(own)}: {name}: {error}") from None
        self._given = given

    @property
    def fields(self) -> dict[str, Any]:
        """All that the client has, addresses as `Mac`, `Ipv4` and `Ipv6`."""
        return {
            name: ADDRESSES[name](value) if name in ADDRESSES else value
            for name, value in self._given.items()
        }

    @property
    def plugs(self) -> Plugs | None:
        """The plugins with their settings, or None for the default ones of the namespace."""
        return self._given.get("plugs")

    def get_fields(self, to_bytes: bool = False) -> dict[str, Any]:
        """All that the client has, addresses as text, or as bytes for the server."""
        return {
            name: (value.V() if to_bytes else value.S()) if isinstance(value, EMUType) else value
            for name, value in self.fields.items()
        }

    def to_json(self) -> dict[str, Any]:
        """All that the client has, as text."""
        return self.get_fields()

    def __getattr__(self, name: str) -> Any:
        if name in _KINDS and name in self._given:
            value = self._given[name]
            return ADDRESSES[name](value) if name in ADDRESSES else value
        raise AttributeError(f"this client has no {name}")

    def __repr__(self) -> str:
        return f"EMUClientObj('{self.mac.S()}')"


class EMUNamespaceObj:
    """A namespace: its key, its clients, its plugins (`plugs`) and the default ones of its clients."""

    def __init__(
        self,
        ns_key: EMUNamespaceKey,
        clients: EMUClientObj | Iterable[EMUClientObj] | None = None,
        plugs: Plugs | None = None,
        def_c_plugs: Plugs | None = None,
    ) -> None:
        _check.kind("ns_key", ns_key, EMUNamespaceKey)
        _check.optional("plugs", plugs, dict)
        _check.optional("def_c_plugs", def_c_plugs, dict)
        self.key = ns_key
        self.plugs: Plugs = {} if plugs is None else plugs
        self.def_c_plugs: Plugs = {} if def_c_plugs is None else def_c_plugs
        #: The clients by the bytes of their MAC addresses.
        self.c_map: dict[bytes, EMUClientObj] = {}
        if clients is not None:
            self.add_clients(clients)

    @property
    def clients(self) -> list[EMUClientObj]:
        """The clients, in the order in which they came."""
        return list(self.c_map.values())

    @property
    def fields(self) -> dict[str, Any]:
        """What the server wants to know of the namespace."""
        return {**self.key.conv_to_dict(), "plugs": self.plugs, "def_c_plugs": self.def_c_plugs}

    def add_clients(self, clients: EMUClientObj | Iterable[EMUClientObj]) -> None:
        """Add a client or several. Raises ``STLError`` for a MAC address that is there already."""
        known, defaults = self.c_map, self.def_c_plugs
        for client in _each("clients", clients, EMUClientObj):
            given = client._given
            mac = given["mac"]
            if mac in known:
                raise STLArgumentError(
                    "clients", client.mac.S(), f"another MAC: {self.key} has a client with it"
                )
            if "plugs" in given and defaults:
                given.update(_completed(given["plugs"], defaults))
            known[mac] = client

    def get_fields(self) -> dict[str, Any]:
        """What the server wants to know of the namespace."""
        return self.fields

    def __getattr__(self, name: str) -> Any:
        if name in ("vport", "tci", "tpid"):
            return getattr(self.key, name)
        raise AttributeError(f"this namespace has no {name}")

    def to_json(self) -> dict[str, Any]:
        """The namespace with its clients, as text."""
        return {**self.fields, "clients": [client.to_json() for client in self.c_map.values()]}


class EMUProfile:
    """Namespaces, and the default plugins of those that have none of their own."""

    def __init__(
        self,
        ns: EMUNamespaceObj | Iterable[EMUNamespaceObj] | None = None,
        def_ns_plugs: Plugs | None = None,
    ) -> None:
        _check.optional("def_ns_plugs", def_ns_plugs, dict)
        self.def_ns_plugs: Plugs = {} if def_ns_plugs is None else def_ns_plugs
        self.ns_list: list[EMUNamespaceObj] = []
        self._keys: set[EMUNamespaceKey] = set()
        self.meta: dict[str, Any] = {}
        if ns is not None:
            self.add_ns(ns)

    def add_ns(self, ns: EMUNamespaceObj | Iterable[EMUNamespaceObj]) -> None:
        """Add a namespace or several. Raises ``STLError`` for a key that is there already."""
        for one in _each("ns", ns, EMUNamespaceObj):
            if one.key in self._keys:
                raise STLArgumentError("ns", str(one.key), "another key: the profile has such a namespace")
            self._keys.add(one.key)
            one.plugs = _completed(one.plugs, self.def_ns_plugs).get("plugs", one.plugs)
            self.ns_list.append(one)

    def to_json(self) -> dict[str, Any]:
        """The whole profile, as text."""
        return {"def_ns_plugs": self.def_ns_plugs, "namespaces": [ns.to_json() for ns in self.ns_list]}

    @classmethod
    def load(cls, filename: str | Path, tunables: list[str] | dict[str, Any] | None = None) -> EMUProfile:
        """The profile of a Python file. Raises ``STLProfileError``, which says the file and the line."""
        path = Path(filename)
        words = _loader.words(tunables)
        profile = _loader.run(path, words)
        if not isinstance(profile, cls):
            raise _loader.no_profile(path, profile)
        profile.meta = {"type": "python", "tunables": words}
        return profile

    @classmethod
    def load_py(cls, filename: str | Path, tunables: list[str] | dict[str, Any] | None = None) -> EMUProfile:
        """As ``load``."""
        return cls.load(filename, tunables)


def _each(name: str, given: _Part | Iterable[_Part], kind: type[_Part]) -> Iterator[_Part]:
    """One thing or several. Raises ``STLTypeError`` for one of another type."""
    parts: Iterable[object] = given if isinstance(given, Iterable) else [given]
    for part in parts:
        if not isinstance(part, kind):
            raise STLTypeError(name, type(part), kind)
        yield part


def _tags(name: str, given: int | list[int]) -> list[int]:
    tags = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(tags) > _TAGS_MAX:
        raise STLArgumentError(name, given, f"at most {_TAGS_MAX} of them, the outer first")
    return [_check.within(name, tag, 0, _TAG_MAX[name]) for tag in tags]


def _of_group(mac: bytes) -> STLArgumentError:
    single = Mac(bytes([mac[0] & ~_GROUP_BIT, *mac[1:]]))
    return STLArgumentError(
        "mac", str(Mac(mac)), f"one of a single host, such as '{single}': it is a group's"
    )


def _unknown_key(name: str) -> STLArgumentError:
    near = difflib.get_close_matches(name, CLIENT_KEYS, 1)
    known = f"one of {', '.join(key for key in CLIENT_KEYS if key != 'mac')}"
    return STLArgumentError(name, "a key of a client", known, f"is it '{near[0]}'?" if near else None)


def _completed(plugs: Plugs | None, defaults: Plugs) -> dict[str, Plugs]:
    """Own plugins with the defaults that they lack: the server gives defaults only to who has no plugins."""
    if plugs is None or plugs.keys() >= defaults.keys():
        return {}
    return {"plugs": {**plugs, **{name: given for name, given in defaults.items() if name not in plugs}}}
