"""How a server template finds its flows: by port, by address, by the first bytes of the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._arguments import U16_MAX, U64_MAX, as_number, ipv4, listed, whole
from ._errors import ASTFError, ASTFErrorMissingParam

_MAP_BYTES_MAX = 8
_OFFSET_MAX = 255
_WHERE = "ASTFAssociationRule"


class ASTFAssociationRule:
    """Flows to a port, to addresses from ``ip_start`` to ``ip_end``, that begin with certain bytes.

    ``l7_map`` is a list of up to eight offsets in growing order: flows of different templates differ in
    the bytes there. As ``{"offset": [...], "mask": [...], "value": [...]}`` it says which bits count,
    and which value they have (for a server that has no clients of its own). ``assoc_id`` is a number for
    add-ons. Raises ``ASTFError``.
    """

    def __init__(
        self,
        port: int = 80,
        ip_start: str | None = None,
        ip_end: str | None = None,
        l7_map: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
        assoc_id: int | None = None,
    ) -> None:
        self.port = whole(_WHERE, "port", port, 1, U16_MAX)
        self.ip_start = None if ip_start is None else ipv4(_WHERE, "ip_start", ip_start)
        self.ip_end = None if ip_end is None else ipv4(_WHERE, "ip_end", ip_end)
        if (self.ip_start is None) != (self.ip_end is None):
            raise ASTFErrorMissingParam(f"{_WHERE}: give both ip_start and ip_end, or none of them")
        if self.ip_start and self.ip_end and as_number(self.ip_start) > as_number(self.ip_end):
            raise ASTFError(f"{_WHERE}: ip_start {self.ip_start} comes after ip_end {self.ip_end}: swap them")
        self.l7_map = None if l7_map is None else _map(l7_map)
        self.assoc_id = None if assoc_id is None else whole(_WHERE, "assoc_id", assoc_id, 0, U64_MAX)

    def to_json(self) -> dict[str, Any]:
        """The rule in the words of the protocol."""
        fields = {"port": self.port, "ip_start": self.ip_start, "ip_end": self.ip_end}
        more = {"l7_map": self.l7_map, "assoc_id": self.assoc_id}
        return {name: value for name, value in {**fields, **more}.items() if value is not None}

    def is_port_only(self) -> bool:
        """Whether the port alone decides."""
        return len(self.to_json()) == 1

    def overlaps(self, other: ASTFAssociationRule) -> bool:
        """Whether a flow could belong to both, as far as ports and addresses tell."""
        if self.port != other.port or self.l7_map or other.l7_map:
            return False
        if self.is_port_only() and other.is_port_only():
            return True
        ranges = [self.ip_start, self.ip_end, other.ip_start, other.ip_end]
        first, last, other_first, other_last = (None if one is None else as_number(one) for one in ranges)
        if first is None or last is None or other_first is None or other_last is None:
            # A rule without addresses takes what no other rule of the port takes.
            return False
        return first <= other_last and other_first <= last


class ASTFAssociation:
    """One rule, or a list of them."""

    def __init__(self, rules: ASTFAssociationRule | Sequence[ASTFAssociationRule] | None = None) -> None:
        given = ASTFAssociationRule() if rules is None else rules
        self.rules: list[ASTFAssociationRule] = listed("ASTFAssociation", "rules", given, ASTFAssociationRule)
        if not self.rules:
            raise ASTFErrorMissingParam("ASTFAssociation: rules is empty, give at least one rule")

    @property
    def port(self) -> int:
        """The port of the first rule."""
        return self.rules[0].port

    def is_port_only(self) -> bool:
        """Whether of the first rule the port alone decides."""
        return self.rules[0].is_port_only()

    def to_json(self) -> list[dict[str, Any]]:
        """The rules in the words of the protocol."""
        return [rule.to_json() for rule in self.rules]


def _map(given: Sequence[int] | Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    described = dict(given) if isinstance(given, Mapping) else {"offset": given}
    unknown = described.keys() - {"offset", "mask", "value"}
    if unknown or "offset" not in described:
        raise ASTFError(
            f"{_WHERE}: l7_map is {given!r}, give offsets, or a dictionary of offset, mask, value"
        )
    offsets = _numbers("offset", described["offset"], _OFFSET_MAX)
    if not 1 <= len(offsets) <= _MAP_BYTES_MAX or sorted(set(offsets)) != offsets:
        raise ASTFError(
            f"{_WHERE}: l7_map has the offsets {offsets}, give 1 to {_MAP_BYTES_MAX} in growing order"
        )
    result = {"offset": offsets}
    for name in ("mask", "value"):
        if name in described:
            result[name] = _numbers(name, described[name], 255)
            if len(result[name]) > len(offsets):
                raise ASTFError(f"{_WHERE}: l7_map has more {name}s than offsets: give one for each offset")
    return result


def _numbers(name: str, values: Any, high: int) -> list[int]:
    if not isinstance(values, (list, tuple)):
        raise ASTFError(f"{_WHERE}: l7_map {name} is {values!r}, give a list of numbers")
    return [whole(_WHERE, f"l7_map {name}", value, 0, high) for value in values]
