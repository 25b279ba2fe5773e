"""The keys: those of TRex's dashboard, and a few more. Each is a row of a table, which `?` shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from allosaur.cli.top._snapshot import Snapshot
from allosaur.cli.top._state import Action, Change, Page, State, View

Done = Action | str | None
"""What a key asks for: a change, what to say, or nothing more."""
_PAGE_ROWS = 10


@dataclass(frozen=True)
class Key:
    """A key, by the letter that it types or by its name."""

    names: tuple[str, ...]
    legend: str
    press: Callable[[State], Done]
    is_there: Callable[[State], bool]
    help: str = ""


def pressed(state: State, name: str) -> Done:
    """Do what a key is for; return what it asks for. Keys that are not for now do nothing."""
    if name.isdecimal() and len(name) == 1:
        return _toggle(state, int(name))
    key = next((one for one in KEYS if name in one.names and one.is_there(state)), None)
    return key.press(state) if key is not None else None


def legends(state: State) -> Iterator[tuple[str, str]]:
    """Return the keys of the view, and of traffic, that do something now."""
    for key in KEYS:
        if key in _OF_VIEWS or not key.legend or not key.is_there(state):
            continue
        yield key.names[0], key.legend


def views(state: State) -> list[tuple[View, str]]:
    """Return the views that this server has."""
    return [(View(key.names[0]), key.legend) for key in _OF_VIEWS if key.is_there(state)]


def _view(
    view: View, legend: str, help: str, *more: str, is_shown: Callable[[Snapshot], bool] | None = None
) -> Key:
    def press(state: State) -> None:
        state.show(view)

    def is_there(state: State) -> bool:
        return is_shown is None or (state.snapshot is not None and is_shown(state.snapshot))

    return Key((view.value, *more), legend, press, is_there, help)


def _in(*views: View) -> Callable[[State], bool]:
    return lambda state: state.view in views


def _toggle(state: State, number: int) -> Done:
    if state.snapshot is None or state.snapshot.port(number) is None:
        return f"there is no port {number}"
    shown = set(state.ports or ()) ^ {number}
    state.ports = sorted(shown)
    return None


def _show_ports(state: State, which: Callable[[State], list[int]]) -> Done:
    state.ports = which(state)
    return None


def _always(state: State) -> bool:
    return True


def _none(state: State) -> list[int]:
    return []


def _all(state: State) -> list[int]:
    return [] if state.snapshot is None else [port.number for port in state.snapshot.ports]


def _ours(state: State) -> list[int]:
    return [] if state.snapshot is None else state.snapshot.ours


def _is_ours(state: State) -> bool:
    return not state.readonly and any(port.is_ours for port in state.shown_ports)


def _may_acquire(state: State) -> bool:
    return not state.readonly and any(not port.is_ours for port in state.shown_ports)


def _in_state(*words: str) -> Callable[[State], bool]:
    """Whether ports are shown that are ours and in one of these states."""
    return lambda state: (
        not state.readonly and any(port.is_ours and port.state in words for port in state.shown_ports)
    )


def _change(change: Change, *words: str) -> Callable[[State], Done]:
    """Return what asks for a change of the ports that are shown, ours, and in one of these states."""

    def press(state: State) -> Done:
        chosen = [
            port.number for port in state.shown_ports if port.is_ours and (not words or port.state in words)
        ]
        return Action(change, tuple(chosen))

    return press


def _acquire(state: State) -> Done:
    return Action(Change.ACQUIRE, tuple(port.number for port in state.shown_ports if not port.is_ours))


def _clear(state: State) -> Done:
    return Action(Change.CLEAR, tuple(state.ports or ()))


def _histogram(state: State) -> None:
    state.is_histogram = not state.is_histogram
    state.chosen = state.scrolled = 0


def _dynamic(state: State) -> None:
    state.is_dynamic = not state.is_dynamic
    state.scrolled = 0


def _next_page(state: State) -> None:
    pages = list(Page)
    state.page = pages[(pages.index(state.page) + 1) % len(pages)]
    state.scrolled = 0


def _next(state: State) -> None:
    if state.view is View.LATENCY:
        _histogram(state)
    else:
        _next_page(state)


def _refused(state: State) -> Done:
    if state.readonly:
        return "this is read-only: no key changes traffic"
    if not state.shown_ports:
        return "no ports are shown: a shows all"
    if not _is_ours(state):
        return "the ports that are shown are not ours: A takes them"
    return "none of our ports that are shown is in a state for that"


_OF_VIEWS = (
    _view(View.DASHBOARD, "dashboard", "ports, and all else as far as there is room", "g"),
    _view(View.STREAMS, "streams", "packet groups: sent, received, the difference"),
    _view(View.LATENCY, "latency", "latency with percentiles"),
    _view(
        View.FLOWS,
        "flows",
        "counters of flows, profiles and template groups",
        is_shown=lambda snapshot: snapshot.has_flows,
    ),
    _view(
        View.EMULATION,
        "emu",
        "emulated clients: how many are ready, what plugins count, errors first",
        is_shown=lambda snapshot: snapshot.emulated > 0,
    ),
    _view(View.UTILIZATION, "util", "cores, packet memory, drivers' counters"),
    _view(View.INFO, "info", "what ports are"),
    _view(View.EVENTS, "events", "what the server told"),
    _view(View.KEYS, "keys", "this page"),
)
_ACTIVE = ("TX", "PAUSE", "PCAP_TX", "ASTF_PARSE", "ASTF_BUILD")
KEYS: tuple[Key, ...] = (
    *_OF_VIEWS,
    Key(("h",), "histogram", _histogram, _in(View.LATENCY), "latency: histogram, and back"),
    Key(
        ("v",), "next view", _next, _in(View.UTILIZATION, View.LATENCY), "util: the next page; latency: as h"
    ),
    Key(("m",), "dynamic counters", _dynamic, _in(View.FLOWS), "flows: counters of tunnels and the like"),
    Key(
        ("left",),
        "",
        lambda state: state.choose(-1),
        _always,
        "flows, latency, info: the group or port before",
    ),
    Key(("right",), "", lambda state: state.choose(1), _always, "and the next one"),
    Key(("up", "k"), "", lambda state: state.scroll(-1), _always, "scroll; page up and page down, too"),
    Key(("down", "j"), "", lambda state: state.scroll(1), _always),
    Key(("pageup",), "", lambda state: state.scroll(-_PAGE_ROWS), _always),
    Key(("pagedown",), "", lambda state: state.scroll(_PAGE_ROWS), _always),
    Key(("c",), "clear", _clear, _always, "count from here, as this screen sees it"),
    Key(("p",), "pause", _change(Change.PAUSE, "TX"), _in_state("TX"), "pause streams of our ports"),
    Key(("r",), "resume", _change(Change.RESUME, "PAUSE"), _in_state("PAUSE"), "let them go on"),
    Key(("+",), "faster", _change(Change.FASTER, *_ACTIVE), _in_state(*_ACTIVE), "5 % more traffic"),
    Key(("-",), "slower", _change(Change.SLOWER, *_ACTIVE), _in_state(*_ACTIVE), "5 % less traffic"),
    Key(("p", "r", "+", "-"), "", _refused, _always),
    Key(("A",), "acquire", _acquire, _may_acquire, "own the ports that are shown, to change their traffic"),
    Key(("R",), "release", _change(Change.RELEASE), _is_ours, "own them no longer; traffic goes on"),
    Key(("o",), "owned", lambda state: _show_ports(state, _ours), _always, "show the ports that are ours"),
    Key(("a",), "all", lambda state: _show_ports(state, _all), _always, "show all ports"),
    Key(
        ("n",),
        "none",
        lambda state: _show_ports(state, _none),
        _always,
        "show no ports; a digit shows or hides one",
    ),
)
