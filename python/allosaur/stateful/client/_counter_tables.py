"""The counters of stateful traffic, by name: read from the server, and counted from the last clear."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..._errors import STLError
from .._errors import ASTFErrorBadTG

SIDES = ("client", "server")
#: How many template groups one request may name.
_GROUPS_A_REQUEST = 10
_TRIES = 5

#: A request: the method and its parameters; what it gives.
Call = Callable[..., Any]
#: The values of both sides, by the place of the counter in the description.
Values = dict[str, dict[int, Any]]


class Description:
    """What counters there are: names, which are errors, which are shown although they are zero."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = sorted(rows, key=lambda row: int(row["id"]))
        self.errors = {row["name"]: row["help"] for row in self.rows if row["info"] == "error"}
        self._places = {int(row["id"]): row for row in self.rows}

    def named(
        self, values: Mapping[int, Any], reference: Mapping[int, Any], skip_zero: bool
    ) -> dict[str, Any]:
        """Values by name, counted from a reference where that makes sense."""
        result = {}
        for row in self.rows:
            place = int(row["id"])
            value = values.get(place, 0)
            if not row["abs"]:
                value -= reference.get(place, 0)
            if not skip_zero or row["zero"] or value > 0:
                result[row["name"]] = value
        return result


class Reference:
    """The values at the last clear, which hold for one epoch."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._values: Values = {}

    def at(self, epoch: int, side: str) -> dict[int, Any]:
        """What to count from; nothing in another epoch."""
        return self._values.get(side, {}) if epoch == self._epoch else {}

    def take(self, epoch: int, values: Values) -> None:
        """Count from here."""
        self._epoch, self._values = epoch, values


class _Book(ABC):
    """Counters by profile, and what they are counted from."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._references: dict[str | None, Reference] = {}

    def read(self, profile_id: str, is_sum: bool, skip_zero: bool) -> dict[str, dict[str, Any]]:
        """The counters of a profile, or with ``is_sum`` of all, by side and name."""
        epoch, described, values = self._values(profile_id, is_sum)
        reference = self._reference(profile_id, is_sum)
        return {side: described.named(values[side], reference.at(epoch, side), skip_zero) for side in SIDES}

    def clear(self, profile_id: str, is_sum: bool) -> None:
        """Count from here."""
        epoch, _, values = self._values(profile_id, is_sum)
        self._reference(profile_id, is_sum).take(epoch, values)

    def _reference(self, profile_id: str, is_sum: bool) -> Reference:
        return self._references.setdefault(None if is_sum else profile_id, Reference())

    @abstractmethod
    def _values(self, profile_id: str, is_sum: bool) -> tuple[int, Description, Values]:
        """The epoch, what counters there are, and their values."""


class TrafficBook(_Book):
    """The counters of all profiles, of each profile, and of template groups."""

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self._description: Description | None = None
        self._groups: dict[str, _Groups] = {}

    def description(self, profile_id: str) -> Description:
        """What counters there are; they are the same for all profiles."""
        if self._description is None:
            self._description = Description(self._call("get_counter_desc", profile_id=profile_id)["data"])
        return self._description

    def errors(self, profile_id: str) -> dict[str, str]:
        """The counters that must be zero, and what they mean."""
        return self.description(profile_id).errors

    def groups(self, profile_id: str) -> list[str]:
        """The names of the template groups of a profile."""
        return list(self._read_groups(profile_id).names)

    def read_groups(
        self, profile_id: str, names: Sequence[str], skip_zero: bool
    ) -> dict[str, dict[str, dict[str, Any]]]:
        """The counters of template groups, by group, side and name. Raises ``ASTFErrorBadTG``."""
        described = self.description(profile_id)
        for _ in range(_TRIES):
            groups = self._read_groups(profile_id)
            found = self._group_values(profile_id, groups, groups.numbers(names))
            if found is not None:
                return {
                    name: {
                        side: groups.described(described, name).named(
                            _places(found[name][side]), {}, skip_zero
                        )
                        for side in SIDES
                    }
                    for name in names
                }
        raise STLError(f"the template groups of profile '{profile_id}' change all the time: try again")

    def _group_values(
        self, profile_id: str, groups: _Groups, numbers: Sequence[int]
    ) -> dict[str, dict[str, Any]] | None:
        """The values of groups by name; None when the profile was changed in between."""
        found: dict[str, dict[str, Any]] = {}
        for start in range(0, len(numbers), _GROUPS_A_REQUEST):
            asked = list(numbers[start : start + _GROUPS_A_REQUEST])
            answer = self._call("get_tg_id_stats", tg_ids=asked, epoch=groups.epoch, profile_id=profile_id)
            if answer["epoch"] != groups.epoch:
                self._groups.pop(profile_id, None)
                return None
            found.update({groups.names[number - 1]: answer[str(number)] for number in asked})
        return found

    def _read_groups(self, profile_id: str) -> _Groups:
        known = self._groups.get(profile_id)
        asked = {"initialized": True, "epoch": known.epoch} if known else {"initialized": False}
        answer = self._call("get_tg_names", profile_id=profile_id, **asked)
        if known is None or answer["epoch"] != known.epoch:
            self._groups[profile_id] = _Groups(answer)
        return self._groups[profile_id]

    def _values(self, profile_id: str, is_sum: bool) -> tuple[int, Description, Values]:
        described = self.description(profile_id)
        method = "get_total_counter_values" if is_sum else "get_counter_values"
        answer = self._call(method, profile_id=profile_id)
        return answer["epoch"], described, {side: _places(answer[side]) for side in SIDES}


class DynamicBook(_Book):
    """Counters that are there only while something runs that has them, such as tunnels."""

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self._descriptions: dict[str | None, tuple[int, Description]] = {}

    def clear_all(self) -> None:
        """Count all that was ever read from here."""
        for key in list(self._descriptions):
            self.clear(key or "", key is None)

    def errors(self, profile_id: str, is_sum: bool) -> dict[str, str]:
        """The counters that must be zero, and what they mean."""
        return self._describe(profile_id, is_sum)[1].errors

    def _values(self, profile_id: str, is_sum: bool) -> tuple[int, Description, Values]:
        method = "get_total_dynamic_counter_values" if is_sum else "get_dynamic_counter_values"
        for _ in range(_TRIES):
            epoch, described = self._describe(profile_id, is_sum)
            answer = self._call(method, profile_id=profile_id, epoch=epoch)
            if not answer.get("epoch_err"):
                return epoch, described, {side: _places(answer[side]) for side in SIDES}
            self._descriptions.pop(None if is_sum else profile_id, None)
        raise STLError("the dynamic counters change all the time: try again")

    def _describe(self, profile_id: str, is_sum: bool) -> tuple[int, Description]:
        key = None if is_sum else profile_id
        if key not in self._descriptions:
            asked: dict[str, Any] = {"is_sum": True} if is_sum else {"profile_id": profile_id}
            answer = self._call("get_dynamic_counter_desc", **asked)
            self._descriptions[key] = answer["epoch"], Description(answer["data"])
        return self._descriptions[key]


class _Groups:
    """The template groups of a profile in one epoch; numbers begin at 1."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.epoch: int = answer["epoch"]
        self.names: list[str] = list(answer["tg_names"])
        self._more: dict[str, Any] = dict(answer.get("tg_addon_desc") or {})

    def numbers(self, names: Iterable[str]) -> list[int]:
        """The numbers of groups. Raises ``ASTFErrorBadTG``."""
        wanted = list(names)
        if not wanted:
            raise ASTFErrorBadTG("tg_names is empty, give at least one template group")
        unknown = [name for name in wanted if name not in self.names]
        if unknown:
            known = ", ".join(self.names) or "none"
            raise ASTFErrorBadTG(f"there is no template group '{unknown[0]}', the groups are: {known}")
        return [self.names.index(name) + 1 for name in wanted]

    def described(self, common: Description, name: str) -> Description:
        """The counters of a group: those of all, and those of its add-on."""
        more = self._more.get(str(self.names.index(name) + 1)) or []
        return Description([*common.rows, *more]) if more else common


def errors_in(
    stats: Mapping[str, Mapping[str, Any]], errors: Mapping[str, str]
) -> tuple[bool, dict[str, Any]]:
    """Which counters of statistics are errors: whether any is, and what they mean, by side."""
    found = {side: {name: text for name, text in errors.items() if stats[side].get(name)} for side in SIDES}
    return any(found.values()), found


def _places(values: Mapping[str, Any]) -> dict[int, Any]:
    return {int(place): value for place, value in values.items()}
