"""Addresses as values that count: `Mac("00:00:00:70:00:01")[3].V()` is the fourth address, as bytes.

The server wants lists of bytes (`V`), people want text (`S`); both are made from the bytes when asked for.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import ClassVar, TypeVar

from .._errors import STLArgumentError, STLError

_MAC = re.compile(r"[0-9a-fA-F]{1,2}([:-])[0-9a-fA-F]{1,2}(?:\1[0-9a-fA-F]{1,2}){4}")
_HOST_PORT = re.compile(r"\[(?P<ipv6>[^\]]*)\]:(?P<port6>.*)|(?P<ipv4>[^:]*):(?P<port4>.*)")
_PORT_MAX = 0xFFFF
_TEXTS_MAX = 1_024
"""So many addresses are remembered by their text: many hosts have one gateway."""

_Self = TypeVar("_Self", bound="EMUType")


class EMUType:
    """An address of `BYTES_NUM` bytes, made from text, from a list of bytes or from another one."""

    __slots__ = ("_bytes",)

    BYTES_NUM: ClassVar[int]
    NAME: ClassVar[str]
    EXAMPLE: ClassVar[str]

    def __init__(self, val: object) -> None:
        # Clients come by the hundred thousand, and most addresses as lists: those first.
        if type(val) is list and len(val) == self.BYTES_NUM:
            try:
                self._bytes = bytes(val)
            except (ValueError, TypeError):
                raise self._refusal(val) from None
        elif isinstance(val, tuple):
            self._bytes = type(self)(list(val))._bytes
        elif isinstance(val, str):
            self._bytes = self._of_text(val)
        elif isinstance(val, EMUType) and val.BYTES_NUM == self.BYTES_NUM:
            self._bytes = val._bytes
        elif isinstance(val, bytes) and len(val) == self.BYTES_NUM:
            self._bytes = val
        else:
            raise self._refusal(val)

    @property
    def num_val(self) -> int:
        """The address as a number."""
        return int.from_bytes(self._bytes, "big")

    def V(self) -> list[int]:
        """The address as a list of bytes, as the server wants it."""
        return list(self._bytes)

    def S(self) -> str:
        """The address as text."""
        raise NotImplementedError

    @classmethod
    def read(cls, val: object) -> bytes:
        """The bytes of an address that is given in any way. Raises ``STLArgumentError``."""
        if type(val) is list and len(val) == cls.BYTES_NUM:
            try:
                return bytes(val)
            except (ValueError, TypeError):
                raise cls._refusal(val) from None
        return cls(val)._bytes

    @classmethod
    def is_valid(cls, val: object) -> bool:
        """Whether this is a list of bytes of such an address."""
        if not isinstance(val, list) or len(val) != cls.BYTES_NUM:
            return False
        return all(type(byte) is int and 0 <= byte <= 255 for byte in val)

    def __getitem__(self: _Self, key: int) -> _Self:
        """The address that comes `key` later, or earlier. Raises ``STLError`` past the last or the first."""
        data = self._bytes
        moved = object.__new__(type(self))
        try:
            moved._bytes = (int.from_bytes(data, "big") + key).to_bytes(len(data), "big")
        except OverflowError:
            raise self._beyond(key) from None
        return moved

    def _beyond(self, key: int) -> STLError:
        what = "below the first" if key < 0 else "past the last"
        return STLError(f"{self.NAME} {self.S()}[{key}] would be {what} address")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EMUType) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __str__(self) -> str:
        return self.S()

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.S()}')"

    def _of_text(self, val: str) -> bytes:
        raise NotImplementedError

    @classmethod
    def _refusal(cls, val: object) -> STLArgumentError:
        return STLArgumentError(
            cls.NAME, val, f"text such as '{cls.EXAMPLE}', or a list of {cls.BYTES_NUM} bytes"
        )


class Mac(EMUType):
    """A MAC address."""

    __slots__ = ()

    BYTES_NUM = 6
    NAME = "mac"
    EXAMPLE = "00:00:00:70:00:01"

    def S(self) -> str:
        """The address as text, `00:00:00:70:00:01`."""
        return self._bytes.hex(":")

    def _of_text(self, val: str) -> bytes:
        if _MAC.fullmatch(val) is not None:
            return bytes(int(part, 16) for part in re.split("[:-]", val))
        raise self._refusal(val)


_IpSelf = TypeVar("_IpSelf", bound="_Ip")


class _Ip(EMUType):
    """An IP address; with `mc` it must be of a multicast group."""

    __slots__ = ("_mc",)

    GROUPS: ClassVar[str]

    def __init__(self, val: object, mc: bool = False) -> None:
        self._mc = False
        # As above: most are lists of bytes, of any address.
        if type(val) is list and len(val) == self.BYTES_NUM and not mc:
            try:
                self._bytes = bytes(val)
            except (ValueError, TypeError):
                raise self._refusal(val) from None
            return
        EMUType.__init__(self, val)
        if not mc and not isinstance(val, _Ip):
            return
        self._mc = mc or (isinstance(val, _Ip) and val.mc)
        if self._mc and not self._is_group(self._bytes):
            raise STLArgumentError(self.NAME, self.S(), f"the address of a multicast group, {self.GROUPS}")

    @property
    def mc(self) -> bool:
        """Whether it must be of a multicast group."""
        return self._mc

    def __getitem__(self: _IpSelf, key: int) -> _IpSelf:
        """The address that comes `key` later, or earlier. Raises ``STLError`` past the last or the first."""
        # As above, without the call: clients have an address or two each.
        data = self._bytes
        moved = object.__new__(type(self))
        try:
            moved._bytes = (int.from_bytes(data, "big") + key).to_bytes(len(data), "big")
        except OverflowError:
            raise self._beyond(key) from None
        if self._mc:
            return type(self)(moved, mc=True)
        moved._mc = False
        return moved

    @classmethod
    def is_valid(cls, val: object, mc: bool = False) -> bool:
        """Whether this is a list of bytes of such an address; with `mc` of a multicast group."""
        return super().is_valid(val) and (not mc or cls._is_group(bytes(val)))  # type: ignore[call-overload]

    @classmethod
    def _is_group(cls, data: bytes) -> bool:
        raise NotImplementedError


class Ipv4(_Ip):
    """An IPv4 address."""

    __slots__ = ()

    BYTES_NUM = 4
    NAME = "ipv4"
    EXAMPLE = "16.0.0.1"
    GROUPS = "224.0.0.0 to 239.255.255.255"

    def S(self) -> str:
        """The address as text, `16.0.0.1`."""
        return "{}.{}.{}.{}".format(*self._bytes)

    def _of_text(self, val: str) -> bytes:
        try:
            return _ipv4(val)
        except ValueError:
            raise self._refusal(val) from None

    @classmethod
    def _is_group(cls, data: bytes) -> bool:
        return data[0] & 0xF0 == 0xE0


class Ipv6(_Ip):
    """An IPv6 address."""

    __slots__ = ()

    BYTES_NUM = 16
    NAME = "ipv6"
    EXAMPLE = "2001:db8::1"
    GROUPS = "ff00:: and above"

    def S(self) -> str:
        """The address as text, `2001:db8::1`."""
        return str(ipaddress.IPv6Address(self._bytes))

    def _of_text(self, val: str) -> bytes:
        try:
            return _ipv6(val)
        except ValueError:
            raise self._refusal(val) from None

    @classmethod
    def _is_group(cls, data: bytes) -> bool:
        return data[0] == 0xFF


@lru_cache(_TEXTS_MAX)
def _ipv4(text: str) -> bytes:
    return ipaddress.IPv4Address(text).packed


@lru_cache(_TEXTS_MAX)
def _ipv6(text: str) -> bytes:
    return ipaddress.IPv6Address(text).packed


class HostPort:
    """An IP address and a port, `16.0.0.1:80` or `[2001:db8::1]:80`."""

    def __init__(self, ip: str, port: int | str) -> None:
        if not isinstance(ip, str) or not set(ip) & set(".:"):
            raise STLArgumentError("ip", ip, "an IPv4 or IPv6 address as text")
        self.is_ipv6 = ":" in ip
        self.ip: Ipv4 | Ipv6 = Ipv6(ip) if self.is_ipv6 else Ipv4(ip)
        self.port = _port(port)

    def encode(self) -> str:
        """The text that the server wants as a destination."""
        host = f"[{self.ip.S()}]" if self.is_ipv6 else self.ip.S()
        return f"{host}:{self.port}"

    __str__ = encode

    @staticmethod
    def decode(string: str) -> tuple[Ipv4 | Ipv6, int]:
        """The address and the port of such a text. Raises ``STLError``."""
        match = _HOST_PORT.fullmatch(string)
        if match is None:
            raise STLArgumentError("string", string, "text such as '16.0.0.1:80' or '[2001:db8::1]:80'")
        if match["port6"] is not None:
            return Ipv6(match["ipv6"]), _port(match["port6"])
        return Ipv4(match["ipv4"]), _port(match["port4"])


def _port(port: int | str) -> int:
    try:
        number = int(port)
    except (TypeError, ValueError):
        raise STLArgumentError("port", port, f"a number from 0 to {_PORT_MAX}") from None
    if not 0 <= number <= _PORT_MAX:
        raise STLArgumentError("port", port, f"a number from 0 to {_PORT_MAX}")
    return number
