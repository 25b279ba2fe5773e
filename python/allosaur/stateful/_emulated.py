"""Which emulated clients a pool has: a namespace, in the words of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ._arguments import U16_MAX, whole
from ._errors import ASTFError, ASTFErrorWrongType

_WHERE = "ASTFIPGenDist"
_KEYS = ("vport", "tci", "tpid")
_LIMITS = {"tci": 4095, "tpid": U16_MAX}
_TAGS_MAX = 2


class NamespaceKey(Protocol):
    """What says where a namespace is: ``EMUNamespaceKey`` is one."""

    def conv_to_dict(self) -> dict[str, Any]:
        """The port (``vport``), and VLAN tags (``tci``, ``tpid``)."""


def namespace_fields(emulation: object) -> dict[str, Any]:
    """The port and tags of a namespace, checked. Raises ``ASTFError``."""
    convert = getattr(emulation, "conv_to_dict", None)
    fields = convert() if callable(convert) else emulation
    if not isinstance(fields, Mapping):
        raise ASTFErrorWrongType(
            f"{_WHERE}: emulation is {emulation!r}, give an EMUNamespaceKey, or a dictionary such as "
            "{'vport': 0, 'tci': [100]}"
        )
    unknown = [name for name in fields if name not in _KEYS]
    if unknown:
        raise ASTFError(f"{_WHERE}: emulation has {unknown[0]!r}, give {', '.join(_KEYS)} only")
    if "vport" not in fields:
        raise ASTFError(f"{_WHERE}: emulation has no 'vport', give the port of the namespace")
    vport = whole(_WHERE, "emulation['vport']", fields["vport"], 0, U16_MAX)
    return {"vport": vport, **{name: _numbers(name, fields.get(name)) for name in _KEYS[1:]}}


def _numbers(name: str, value: object) -> list[int]:
    """Those of up to two tags. Raises ``ASTFError``."""
    given = [] if value is None else [value] if isinstance(value, int) else value
    where = f"emulation[{name!r}]"
    if not isinstance(given, (list, tuple)) or len(given) > _TAGS_MAX:
        raise ASTFErrorWrongType(f"{_WHERE}: {where} is {value!r}, give a list of up to {_TAGS_MAX} numbers")
    return [whole(_WHERE, where, number, 0, _LIMITS[name]) for number in given]
