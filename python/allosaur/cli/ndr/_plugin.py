"""Plug-ins of TRex's `ndr`: a Python file whose `register()` gives an object that is asked around each trial.

Its `pre_iteration` may prepare the device, and its `post_iteration` stops the search by returning true. Both
get the results by TRex's names.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from allosaur._files import no_file
from allosaur.cli._errors import bad_input, brief
from allosaur.cli.ndr._bench import Scale
from allosaur.search import Trial

_METHODS = ("pre_iteration", "post_iteration")
_PATH_MODULE = "stl_path"
"""TRex's examples import it to find TRex; here there is nothing to find."""


class PlugIn:
    """A plug-in, and what it is told."""

    def __init__(self, path: Path, tunables: Mapping[str, Any]) -> None:
        self._path = path
        self._tunables = dict(tunables)
        self._results: dict[str, Any] | None = None
        self._rounds = 0
        with _stand_in(), contextlib.redirect_stdout(sys.stderr):
            self._plugin = _loaded(path)

    def before(self, load: float, scale: Scale) -> None:
        """Call `pre_iteration`: the rate is that of the trial to come, all else of the one before."""
        is_first = self._results is None
        results = None if is_first else {**(self._results or {}), **_rates(load, scale)}
        self._call("pre_iteration", is_first, results)

    def after(self, trial: Trial, scale: Scale, ports: Mapping[str, Any]) -> bool:
        """Call `post_iteration`; return whether the search shall end. `ports` are counters of the server."""
        is_first = self._results is None
        self._results = run_results(trial, scale, ports, self._rounds)
        self._rounds += 1
        return bool(self._call("post_iteration", is_first, dict(self._results)))

    def _call(self, method: str, is_first: bool, results: dict[str, Any] | None) -> Any:
        with contextlib.redirect_stdout(sys.stderr):
            try:
                return getattr(self._plugin, method)(
                    finding_max_rate=is_first, run_results=results, **self._tunables
                )
            except Exception as error:
                raise bad_input(
                    f"plug-in {self._path}: {method}: {type(error).__name__}: {brief(error)}"
                ) from error


def run_results(trial: Trial, scale: Scale, ports: Mapping[str, Any], iteration: int) -> dict[str, Any]:
    """Return what TRex calls `run_results`."""
    details, offered = trial.details, max(trial.offered, 1)
    missed = int(details.get("missed", 0))
    sent = offered - missed
    through = 1 - int(details.get("not_received", trial.lost)) / max(sent, 1)
    tx_pps = sent / trial.duration_s
    l1, l2 = ((one or 0.0) for one in (scale.bps_l1, scale.bps_l2))
    return {
        "queue_full_percentage": 100 * missed / offered,
        "drop_rate_percentage": 100 * (1 - through),
        "valid_latency": not any("latency" in why for why in trial.failures),
        "tx_util": trial.load * (scale.line_percent or 0.0),
        "latency": details.get("latency") or {},
        "cpu_util": float(ports.get("cpu_util", 0.0)),
        "bw_per_core": float(ports.get("bw_per_core", 0.0)),
        "tx_pps": tx_pps,
        "rx_pps": tx_pps * through,
        "tx_bps": tx_pps * l2,
        "rx_bps": tx_pps * through * l2,
        "total_tx_L1": tx_pps * l1,
        "total_rx_L1": tx_pps * through * l1,
        "max_rate_bps": scale.load_max * l2,
        "iteration": iteration,
        "total_iterations": iteration,
        **_rates(trial.load, scale),
        "rate_rx_bps": trial.load * through * l2,
    }


def _rates(load: float, scale: Scale) -> dict[str, float]:
    return {"rate_p": 100 * load / scale.load_max, "rate_tx_bps": load * (scale.bps_l2 or 0.0)}


def _loaded(path: Path) -> Any:
    from allosaur._errors import STLError
    from allosaur.streams._loader import located_module

    if why := no_file(path):
        raise bad_input(f"--plugin {path}: {why}")
    try:
        with located_module(path) as module:
            register = getattr(module, "register", None)
            plugin = register() if callable(register) else None
    except STLError as error:
        raise bad_input(f"plug-in {brief(error)}") from error
    missing = [name for name in _METHODS if not callable(getattr(plugin, name, None))]
    if missing:
        raise bad_input(f"plug-in {path}: register() must give an object with {' and '.join(missing)}")
    return plugin


@contextlib.contextmanager
def _stand_in() -> Iterator[None]:
    """Let `import stl_path` of a plug-in succeed."""
    has_own = _PATH_MODULE in sys.modules
    if not has_own:
        sys.modules[_PATH_MODULE] = types.ModuleType(_PATH_MODULE)
    try:
        yield
    finally:
        if not has_own:
            sys.modules.pop(_PATH_MODULE, None)
