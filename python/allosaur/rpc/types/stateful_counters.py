"""Replies of the RPC: stateful mode: counters.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class CounterDescription(TypedDict):
    """A counter of stateful traffic: a row of a table."""

    id: int
    """Its number, by which values are told."""
    name: str
    """Its name; empty for a line that only structures the table."""
    help: str
    """What it counts."""
    units: str
    """Its unit; empty for a plain number."""
    info: Literal["info", "error"]
    """`error`: 0 unless something goes wrong."""
    zero: bool
    """Shown also when 0."""
    abs: bool
    """The value of the moment: it cannot be counted from a time on."""
    real: bool
    """False for lines that only structure the table."""


class CounterDescriptions(TypedDict):
    """Reply of `get_counter_desc`."""

    name: str
    """`counter desc`."""
    data: list[CounterDescription]
    """The 140 rows of the table."""


class CounterValues(TypedDict):
    """What stateful traffic has counted."""

    name: str
    """`counter vals`; of a template group `counters per TGID: ` and its number."""
    epoch: int
    """How often the profile, or for all together stateful traffic, has begun."""
    client: dict[str, int | float]
    """Of clients: values by the counter's number. Those that are 0 are left out, unless their
    description says otherwise."""
    server: dict[str, int | float]
    """The same of servers."""


class DynamicCounterDescriptions(TypedDict):
    """Reply of `get_dynamic_counter_desc`."""

    name: str
    """`counter desc`."""
    epoch: int
    """Changes with the counters that there are."""
    data: list[CounterDescription]
    """The counters."""


class OtherCounters(TypedDict):
    """There are other dynamic counters than those that the client knows."""

    epoch_err: str
    """The epoch is over: ask for the descriptions again."""


DynamicCounterValues = CounterValues | OtherCounters
"""What dynamic counters have counted, or that they are others than the client knows."""


class TemplateGroupNames(TypedDict):
    """Reply of `get_tg_names`."""

    epoch: int
    """Changes with each start of the profile. The other fields are there when it is not the
    client's."""
    tg_addon_desc: NotRequired[dict[str, list[CounterDescription]]]
    """By the group's number, descriptions of further counters, whose numbers follow those of
    `get_counter_desc`. 0 is the group of templates without a name."""
    tg_names: NotRequired[list[str]]
    """The names; the first has number 1."""


TemplateGroupValues = dict[str, Any]
"""Reply of `get_tg_id_stats`. When the epoch is the client's it has, by the group's number, what
`get_counter_values` answers."""
