"""Counters of the server, in tables: what they are is asked once, what they count each time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ._profile import EMUClientKey, EMUNamespaceKey
from ._requests import Requests

SEVERITIES = {0x12: "INFO", 0x13: "WARNING", 0x14: "ERROR"}

Counter = dict[str, Any]
"""`name`, `value`, `unit`, `help`, `zero` (shown when zero), `info` (a severity)."""


class DataCounter:
    """The tables of one method of the server: of all of it, of a namespace or of a client."""

    def __init__(self, requests: Requests, cmd: str) -> None:
        self._requests = requests
        self.cmd = cmd
        self.meta: dict[str, dict[str, Any]] | None = None
        self.add_data: dict[str, Any] = {}

    def set_add_data(
        self,
        ns_key: EMUNamespaceKey | None = None,
        c_key: EMUClientKey | None = None,
        reset: bool = False,
    ) -> None:
        """Say whose counters they are."""
        if c_key is not None and not reset:
            self.add_data = c_key.conv_to_dict(add_ns=True, to_bytes=True)
        elif ns_key is not None and not reset:
            self.add_data = ns_key.conv_to_dict(add_tunnel_key=True)
        else:
            self.add_data = {}

    def get_counters(
        self,
        table_regex: str | None = None,
        cnt_filter: Sequence[str] | None = None,
        zero: bool = True,
        verbose: bool = True,
    ) -> dict[str, Any]:
        """The counters by table, each with what it means.

        ``table_regex`` takes the tables in whose names it is found, ``cnt_filter`` severities ("INFO",
        "WARNING", "ERROR"). Without ``verbose`` there are only numbers, those of ``cnt_filter`` by name.
        """
        if not verbose:
            return dict(self.values(zero=zero, mask=cnt_filter))
        meta = self._meanings()  # asked first, as TRex's client does
        return _described(meta, self.values(), table_regex, cnt_filter, zero)

    def get_sums(self, c_keys: Sequence[EMUClientKey], zero: bool = True) -> dict[str, Any]:
        """The counters of several clients by table, each the sum of all, with what it means.

        Clients without the plugin count nothing; when none has it there are no tables.
        """
        asked = {"meta": False, "zero": False, "mask": None, "clear": False}
        answers = self._requests.of_each_client(self.cmd, c_keys, asked)
        having = [(key, answer) for key, answer in zip(c_keys, answers, strict=True) if answer is not None]
        if not having:
            return {}
        sums: dict[str, dict[str, int]] = {}
        for _, answer in having:
            for name, counters in answer.items():
                table = sums.setdefault(name, {})
                for counter, value in counters.items():
                    table[counter] = table.get(counter, 0) + value
        self.set_add_data(c_key=having[0][0])
        return _described(self._meanings(), sums, None, None, zero)

    def table_names(self) -> list[str]:
        """The names of the tables."""
        return list(self._meanings())

    def clear_counters(self) -> Any:
        """Let the counters begin at zero."""
        return self.values(clear=True)

    def values(
        self,
        meta: bool = False,
        zero: bool = False,
        mask: Sequence[str] | str | None = None,
        clear: bool = False,
    ) -> Any:
        """What the server answers: numbers by table and name, or with ``meta`` what they mean."""
        names = [mask] if isinstance(mask, str) else list(mask) if mask is not None else None
        answer = self._requests.call(
            self.cmd, {"meta": meta, "zero": zero, "mask": names, "clear": clear, **self.add_data}
        )
        if meta:
            for table in answer.values():
                for counter in table.get("meta", []):
                    counter["info"] = SEVERITIES.get(counter.get("info"), "UNKNOWN_TYPE")
        return answer

    def _meanings(self) -> dict[str, dict[str, Any]]:
        if self.meta is None:
            self.meta = self.values(meta=True)
        return self.meta


def _described(
    meta: dict[str, dict[str, Any]],
    values: dict[str, dict[str, int]],
    table_regex: str | None,
    cnt_filter: Sequence[str] | None,
    zero: bool,
) -> dict[str, Any]:
    """Counters by table, each with what it means."""
    tables = {}
    for name, table in meta.items():
        if table_regex is not None and not re.search(table_regex, name):
            continue
        counters = [
            {**counter, "value": values.get(name, {}).get(counter["name"], 0)}
            for counter in table.get("meta", [])
            if cnt_filter is None or counter["info"] in cnt_filter
        ]
        kept = [counter for counter in counters if zero or counter["value"]]
        if kept:
            tables[name] = kept
    return tables
