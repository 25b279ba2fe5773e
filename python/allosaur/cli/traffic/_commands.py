"""What `allosaur start`, `stop`, `update`, `clear` and `stats` do, whatever kind of traffic it is."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from allosaur.cli import _answer, _emulated, _format, _registry
from allosaur.cli._answer import Answer
from allosaur.cli._errors import CommandError, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.traffic import _kinds

if TYPE_CHECKING:
    from allosaur import STLClient


_HEADER = ("emulated clients", "value", "unit", "meaning")


def start(options: argparse.Namespace) -> Answer:
    """Start a profile, and come back. Raises :class:`CommandError`."""
    traffic = _kinds.of_profile(options)
    traffic.load()
    with Interrupt() as interrupt, traffic.connected():
        started = traffic.start(interrupt)
    stats = _answer.where(options) + started.stats_options
    stop = _answer.where(options) + started.stop_options
    text = (
        f"{started.text}.\n"
        f"  allosaur stats{stats}    shows what is counted\n"
        f"  allosaur stop{stop}     stops it"
    )
    return Answer(text, {"profile": options.profile, **started.fields})


def stop(options: argparse.Namespace) -> Answer:
    """Stop what the options name. Raises :class:`CommandError`."""
    with _kinds.on_server(options) as traffic:
        loaded = traffic.loaded() if options.clear else []
        running = traffic.running()
        changed = [*running, *(unit for unit in loaded if unit not in running)]
        if changed:
            traffic.own(changed)
        stopped = traffic.stop(running)
        removed = traffic.remove(loaded)
    sentences = [f"Stopped {traffic.listed(running)}." if running else "Nothing ran."]
    if loaded:
        sentences.append(removed.text)
    text = "\n".join(filter(None, [" ".join(sentences), stopped.text]))
    return Answer(text, {"stopped": running, "cleared": loaded, **stopped.fields, **removed.fields})


def update(options: argparse.Namespace) -> Answer:
    """Change the rate of what runs. Raises :class:`CommandError`."""
    with _kinds.on_server(options) as traffic:
        traffic.check_rate()
        running = traffic.running()
        if not running:
            raise CommandError("nothing runs; start a profile with `allosaur start PROFILE`")
        traffic.own(running)
        changed = traffic.set_rate(running)
    return Answer(changed.text, {"updated": running, **changed.fields})


def clear(options: argparse.Namespace) -> Answer:
    """Take off the server what the options name. Raises :class:`CommandError`."""
    with _kinds.on_server(options) as traffic:
        loaded = traffic.loaded()
        running = [unit for unit in traffic.running() if unit in loaded]
        if running:
            raise traffic.refuse_to_remove(running)
        if not loaded:
            return Answer(traffic.no_units, {"cleared": []})
        traffic.own(loaded)
        removed = traffic.remove(loaded)
    return Answer(removed.text, {"cleared": loaded, **removed.fields})


def stats(options: argparse.Namespace) -> Answer:
    """Tell what traffic counts. Raises :class:`CommandError`."""
    with _kinds.on_server(options) as traffic:
        client = traffic.client()
        if options.metrics is not None and client is not None:
            return _registry_answer(client, options.metrics)
        answer = traffic.stats()
        emulated = None if client is None else _of_emulated(client)
    if emulated is None:
        return answer
    return Answer(f"{answer.text}\n\n{emulated.text}", {**answer.fields, **emulated.fields})


def _registry_answer(client: STLClient, prefixes: Sequence[str]) -> Answer:
    metrics = _registry.read(client, prefixes)
    return Answer(_registry.table(list(metrics.described())), {"metrics": _registry.objects(metrics)})


def _of_emulated(client: STLClient) -> Answer | None:
    """Return what they count; `None` without clients, and where the server has no registry."""
    with explained("cannot read the counters of emulated clients"):
        metrics = _emulated.read(client)
    if metrics is None or not _emulated.count(metrics):
        return None
    rows = [
        [
            ("! " if one.is_wrong else "")
            + " ".join(filter(None, (_emulated.name(one), _registry.where(one)))),
            _registry.said(one.value),
            one.family.unit or "",
            one.family.help,
        ]
        for one in (*_emulated.state(metrics), *_emulated.counters(metrics))
    ]
    table = _format.table(_HEADER, rows, texts=(_HEADER[0], *_HEADER[2:]))
    fields = {"clients": _emulated.count(metrics), "metrics": _registry.objects(metrics)}
    return Answer(table, {"emulation": fields})


COMMANDS: Mapping[str, Callable[[argparse.Namespace], Answer]] = {
    "start": start,
    "stop": stop,
    "update": update,
    "stats": stats,
    "clear": clear,
}
