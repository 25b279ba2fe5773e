"""Small functions by the names of ``trex.utils.common`` and ``trex.common.trex_types``."""

from __future__ import annotations

import getpass
import ipaddress
import random
import re
import string
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._errors import TRexTypeError
from ._addresses import mac2int

basestring = str
using_python_3 = True

__all__ = [
    *("PassiveTimer", "all_none", "basestring", "bitfield_to_list", "bitfield_to_str", "calc_bps_L1"),
    *("compress_ipv6", "filter_none", "generate_ipv6", "generate_ipv6_solicited_node", "get_current_user"),
    *("get_number", "has_dup", "int2ipv6", "ipv62int", "is_integer", "is_sub_list", "is_valid_ipv4_ret"),
    *("is_valid_ipv6_ret", "list_difference", "list_intersect", "list_remove_dup", "list_xor", "listify"),
    *("listify_if_int", "multicast_mac_from_ipv6", "natural_sorted_key", "parse_ports_from_profiles"),
    *("random_id_gen", "round_float", "safe_ord", "sec_split_usec", "try_int", "user_input"),
    *("using_python_3", "validate_type", "verify_exclusive_arg"),
]


def is_valid_ipv4_ret(ip_addr: str | int | bytes) -> bytes:
    """The four bytes of an IPv4 address. Raises ``TypeError``."""
    try:
        return ipaddress.IPv4Address(ip_addr).packed
    except ValueError as error:
        raise TypeError(f"{ip_addr!r} is not an IPv4 address") from error


def is_valid_ipv6_ret(ipv6_addr: str | int | bytes) -> bytes:
    """The sixteen bytes of an IPv6 address. Raises ``TypeError``."""
    try:
        return ipaddress.IPv6Address(ipv6_addr).packed
    except ValueError as error:
        raise TypeError(f"{ipv6_addr!r} is not an IPv6 address") from error


def ipv62int(ip: str) -> tuple[int, int]:
    """An IPv6 address as two numbers of eight bytes."""
    high, low = divmod(int(ipaddress.IPv6Address(ip)), 1 << 64)
    return high, low


def int2ipv6(a: int, b: int) -> str:
    """Two numbers of eight bytes as an IPv6 address."""
    return str(ipaddress.IPv6Address(a << 64 | b))


def compress_ipv6(ipv6_addr: str) -> str:
    """The short form of an IPv6 address."""
    return str(ipaddress.IPv6Address(ipv6_addr))


def generate_ipv6(mac_str: str, prefix: str = "fe80") -> str:
    """The address that a host with this MAC address gives itself (RFC 4291, appendix A)."""
    mac = mac2int(mac_str)
    number = ((mac >> 24) << 40 | 0xFFFE << 24 | mac & 0xFFFFFF) ^ 1 << 57
    return str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(f"{prefix}::")) | number))


def generate_ipv6_solicited_node(ipv6: str) -> str:
    """The address at which neighbors ask for this one (RFC 4291, section 2.7.1)."""
    low = int(ipaddress.IPv6Address(ipv6)) & 0xFFFFFF
    return str(ipaddress.IPv6Address(int(ipaddress.IPv6Address("ff02::1:ff00:0")) | low))


def multicast_mac_from_ipv6(ipv6: str) -> str:
    """The MAC address of a multicast address (RFC 2464, section 7)."""
    return (b"\x33\x33" + ipaddress.IPv6Address(ipv6).packed[-4:]).hex(":")


def listify(x: Any) -> list[Any]:
    """A list of one, unless it is a list or a tuple already."""
    return list(x) if isinstance(x, (list, tuple)) else [x]


def listify_if_int(x: Any) -> Any:
    """A list of one number; anything else as it is."""
    return [x] if isinstance(x, int) else x


def is_integer(x: object) -> bool:
    """Whether it is a whole number."""
    return isinstance(x, int)


def validate_type(arg_name: str, arg: object, valid_types: Any) -> None:
    """Raise ``TRexTypeError`` unless the argument has one of the types."""
    kinds = tuple(valid_types) if isinstance(valid_types, (list, tuple)) else (valid_types,)
    if not isinstance(arg, kinds):
        raise TRexTypeError(arg_name, type(arg), kinds)


def verify_exclusive_arg(args_list: Iterable[object]) -> bool:
    """Whether exactly one of the values is not None."""
    return sum(one is not None for one in args_list) == 1


def parse_ports_from_profiles(ports: Any) -> list[int]:
    """The ports of profiles of ports, each once."""
    return list({int(port) for port in listify(ports)})


def get_number(input: Any) -> int | None:
    """The text as a whole number, or None."""
    try:
        return int(input)
    except (TypeError, ValueError):
        return None


def try_int(i: Any) -> Any:
    """The text as a whole number, or as it is."""
    number = get_number(i)
    return i if number is None else number


def list_intersect(l1: Sequence[Any], l2: Sequence[Any]) -> list[Any]:
    """What is in both, in the order of the first."""
    return [one for one in l1 if one in l2]


def list_difference(l1: Sequence[Any], l2: Sequence[Any]) -> list[Any]:
    """What is in the first only."""
    return [one for one in l1 if one not in l2]


def list_xor(l1: Sequence[Any], l2: Sequence[Any]) -> list[Any]:
    """What is in one of both."""
    return list(set(l1) ^ set(l2))


def is_sub_list(l1: Sequence[Any], l2: Sequence[Any]) -> bool:
    """Whether all of the first is in the second."""
    return set(l1) <= set(l2)


def list_remove_dup(l: Sequence[Any]) -> list[Any]:  # noqa: E741
    """Each value once."""
    return list(dict.fromkeys(l))


def has_dup(l: Sequence[Any]) -> bool:  # noqa: E741
    """Whether a value is there twice."""
    return len(l) > len(set(l))


def filter_none(seq: Iterable[Any]) -> Iterator[Any]:
    """All that is not None."""
    return (one for one in seq if one is not None)


def all_none(seq: Iterable[Any]) -> bool:
    """Whether nothing else is there than None."""
    return all(one is None for one in seq)


def bitfield_to_list(bf: int) -> list[int]:
    """The numbers of the bits that are set."""
    return [bit for bit in range(bf.bit_length()) if bf >> bit & 1]


def bitfield_to_str(bf: int) -> str:
    """The numbers of the bits that are set, as text."""
    return ", ".join(str(bit) for bit in bitfield_to_list(bf)) or "-"


def calc_bps_L1(bps: float, pps: float) -> float:  # noqa: N802
    """Bits a second on the wire (20 bytes more a packet), from those of the frames."""
    return bps + 160 * pps if bps and pps else 0


def round_float(f: Any) -> Any:
    """A fraction with two digits; anything else as it is."""
    return round(f, 2) if isinstance(f, float) else f


def sec_split_usec(ts: float) -> tuple[int, int]:
    """Seconds and microseconds of a time."""
    return int(ts), int((ts - int(ts)) * 1e6)


def safe_ord(c: str | int) -> int:
    """The number of a character, or the number itself."""
    return ord(c) if isinstance(c, str) else c


def natural_sorted_key(val: str) -> list[int | str]:
    """A key to sort by: a2 comes before a10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", val)]


def get_current_user() -> str:
    """The name of the user."""
    return getpass.getuser()


def user_input() -> str:
    """A line of standard input."""
    return input()


class random_id_gen:  # noqa: N801
    """Gives random names of so many characters."""

    def __init__(self, length: int = 8) -> None:
        self.length = length

    def next(self) -> str:
        """Another name."""
        return "".join(random.choices(string.ascii_lowercase + string.digits, k=self.length))

    __next__ = next


class PassiveTimer:
    """A time that expires; None is forever."""

    def __init__(self, timeout_sec: float | None = None) -> None:
        self.time_begin = time.time()
        self.expr_sec = None if timeout_sec is None else self.time_begin + timeout_sec

    def has_expired(self) -> bool:
        """Whether the time is over."""
        return self.expr_sec is not None and time.time() > self.expr_sec

    def has_elapsed(self, timegap: float) -> bool:
        """Whether so much time has passed since this was last true."""
        now = time.time()
        if now - self.time_begin <= timegap:
            return False
        self.time_begin = now
        return True
