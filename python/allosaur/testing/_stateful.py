"""The mock server for stateful traffic: profiles, their states and events, counters that a test sets."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ..client._places import DEFAULT_PROFILE
from ..rpc._events import EventType
from ._metrics import MockMetric, of_flows
from ._transport import MockTransport, _refused

_IDLE, _LOADED, _PARSE, _BUILD, _TX, _CLEANUP, _DELETE = range(7)
#: Name, units, whether it is shown when zero, whether it is an error.
_COUNTERS = (
    ("m_active_flows", "", True, False),
    ("m_traffic_duration", "sec", False, False),
    ("tcps_connects", "", False, False),
    ("tcps_sndbyte", "", False, False),
    ("tcps_drops", "", False, True),
    ("m_est_flows", "", False, False),
    *(
        (f"{kind}_{name}", "", False, False)
        for kind, names in (
            ("tcps", ("connattempt", "accepts", "closed", "sndbyte_ok", "rcvbyte")),
            ("udps", ("connects", "accepts", "closed", "sndbyte", "rcvbyte", "sndpkt", "rcvpkt")),
        )
        for name in names
    ),
    ("tcps_rexmttimeo", "", False, True),
)
#: How a flow may end before its program did.
_FAILED = ("reset", "closed_early", "timed_out", "refused", "cut_off", "aborted")
_OUTCOMES = (
    *("completed", *_FAILED, "unanswered"),
    *("http_1xx", "http_2xx", "http_3xx", "http_4xx", "http_5xx", "http_other"),
)
_TIMES = ("connect", "first_byte", "program", "handshake", "response_begin", "response")
#: Flows that are counted as they are now; all others only grow.
_GAUGES = ("m_active_flows", "m_est_flows", "m_traffic_duration")


class MockStatefulTransport(MockTransport):
    """A mock server for stateful traffic.

    Profiles are taken in fragments, start, run and stop with the states and events of a server; no
    traffic flows. A run with a duration ends at once with ``auto_finish``; else the test calls
    ``end_profile``. Counters are what the test puts into ``counters`` ("client", "server", by name).
    """

    def __init__(self, port_count: int = 2, auto_finish: bool = False) -> None:
        super().__init__(port_count, auto_finish)
        #: The counters of every profile, template group and the sum, by side and name.
        self.counters: dict[str, dict[str, float]] = {"client": {}, "server": {}}
        #: How flows ended, of every profile and template group: by side ("client", "server") and name
        #: ("reset", "unanswered", "http_2xx" and so on). What is not named is 0, and all other flows of the
        #: side are ``completed``.
        self.outcomes: dict[str, dict[str, int]] = {"client": {}, "server": {}}
        #: The "times" of ``get_flow_outcomes``: by name, microseconds by their names, and ``count``.
        self.times: dict[str, dict[str, float]] = {}
        #: Flows that were due and not opened in time, of every profile.
        self.missed_flows = 0
        #: What is wrong with the next profile that starts: it fails with this text.
        self.start_error: str | None = None
        #: The number of the epoch, which begins anew when a profile begins to run.
        self.epoch = 0
        self._context = ""
        self._states: dict[str, int] = {DEFAULT_PROFILE: _IDLE}
        self._texts: dict[str, str] = {}
        self._parts: dict[str, str] = {}
        self._topology: dict[str, Any] = {"vifs": None, "gws": None}
        self._ignored: dict[str, list[Any]] = {"macs": [], "ips": []}

    def profile(self, profile_id: str = DEFAULT_PROFILE) -> dict[str, Any]:
        """What is loaded under a name."""
        loaded: dict[str, Any] = json.loads(self._texts[profile_id])
        return loaded

    def end_profile(self, profile_id: str = DEFAULT_PROFILE) -> None:
        """Let the traffic of a profile end by itself."""
        self._change(profile_id, _CLEANUP)
        self._change(profile_id, _LOADED)

    def _do_get_version(self, _params: dict[str, Any]) -> Any:
        return {**super()._do_get_version(_params), "mode": "ASTF"}

    def _do_sync(self, _params: dict[str, Any]) -> Any:
        return {"epoch": self.epoch, "state": max(self._states.values()), "state_profile": dict(self._states)}

    def _do_inc_epoch(self, params: dict[str, Any]) -> Any:
        self._own(params)
        self.epoch += 1
        return {"epoch": self.epoch}

    def _do_acquire(self, params: dict[str, Any]) -> Any:
        if self._context and not params["force"]:
            raise _refused("context is already taken (use 'force' argument to override)")
        self._context = f"context-{len(self.calls)}"
        who = {"who": params["user"], "session_id": params["session_id"], "force": params["force"]}
        for port in self._ports:
            port.owner, port.handler = params["user"], f"handler-{port.index}-{len(self.calls)}"
            self.publish(EventType.PORT_ACQUIRED, port_id=port.index, **who)
        return {"handler": self._context, "ports": {str(port.index): port.handler for port in self._ports}}

    def _do_release(self, params: dict[str, Any]) -> Any:
        self._own(params)
        self._context = ""
        for port in self._ports:
            port.owner, port.handler = "", None

    def _do_profile_fragment(self, params: dict[str, Any]) -> Any:
        self._own(params)
        name = params["profile_id"]
        if self._states.get(name, _IDLE) not in (_IDLE, _LOADED):
            raise _refused(f"Profile {name} is active, stop it first")
        if params.get("frag_first"):
            self._parts[name] = ""
            if name not in self._states:
                self._change(name, _IDLE)
            loaded = self._texts.get(name, "")
            known = _md5(loaded)
            if loaded and params.get("md5") == known:
                return {"matches_loaded": True}
            if any(_md5(text) == params.get("md5") for text in self._texts.values()):
                raise _refused("Fragment already added on other profile_id")
        self._parts[name] += params["fragment"]
        if params.get("frag_last"):
            self._texts[name] = self._parts.pop(name)
            self._change(name, _LOADED)
        return None

    def _do_profile_clear(self, params: dict[str, Any]) -> Any:
        self._own(params)
        name = params["profile_id"]
        if self._state(name) not in (_IDLE, _LOADED):
            raise _refused(f"Invalid state {self._states[name]} for clearing {name}")
        if self._states[name] == _LOADED:
            self._change(name, _DELETE)
        self._remove(name)

    def _remove(self, name: str) -> None:
        self._texts.pop(name, None)
        self._states.pop(name)
        self.publish(EventType.PROFILE_CLEARED, profile_id=name, epoch=self.epoch)
        if name == DEFAULT_PROFILE:
            self._change(name, _IDLE)

    def _do_start(self, params: dict[str, Any]) -> Any:
        self._own(params)
        name = params["profile_id"]
        if self._state(name) != _LOADED:
            raise _refused(f"Invalid state {self._states[name]} for starting {name}")
        self._change(name, _PARSE)
        if self.start_error is not None:
            error, self.start_error = self.start_error, None
            self._change(name, _LOADED, error=error)
            return
        self._change(name, _BUILD)
        self.epoch += 1
        self._change(name, _TX)
        if self._auto_finish and params["duration"] > 0:
            self.end_profile(name)

    def _do_stop(self, params: dict[str, Any]) -> Any:
        self._own(params)
        if self._state(params["profile_id"]) == _TX:
            self.end_profile(params["profile_id"])

    def _do_update(self, params: dict[str, Any]) -> Any:
        self._own(params)
        if self._state(params["profile_id"]) != _TX:
            raise _refused(f"Profile {params['profile_id']} does not run")

    def _do_get_profile_list(self, params: dict[str, Any]) -> Any:
        self._own(params)
        ports: dict[str, list[str]] = {str(port.index): [] for port in self._ports}
        return [*self._states, *([ports] if params.get("profiles_in_ports") else [])]

    def _do_service(self, params: dict[str, Any]) -> Any:
        self._own(params)
        for port in self._ports:
            port.service, port.filtered = params["enabled"], params["filtered"]
        return {}

    def _do_start_latency(self, params: dict[str, Any]) -> Any:
        self._own(params)

    def _do_update_latency(self, params: dict[str, Any]) -> Any:
        self._own(params)

    def _do_stop_latency(self, params: dict[str, Any]) -> Any:
        self._own(params)
        return {"stopped": True}

    def _do_get_latency_stats(self, _params: dict[str, Any]) -> Any:
        return {"name": "trex-latecny-v2", "type": 0, "data": {"cpu_util": 0.0, "epoch": 0, "unknown": 0}}

    def _do_get_counter_desc(self, _params: dict[str, Any]) -> Any:
        rows = [
            {
                "id": number,
                "name": name,
                "help": f"help of {name}",
                "units": units,
                "zero": zero,
                "info": "error" if is_error else "info",
                "real": True,
                "abs": name in _GAUGES,
            }
            for number, (name, units, zero, is_error) in enumerate(_COUNTERS)
        ]
        return {"name": "counter desc", "data": rows}

    def _do_get_counter_values(self, params: dict[str, Any]) -> Any:
        self._state(params["profile_id"])
        return self._values()

    def _do_get_total_counter_values(self, _params: dict[str, Any]) -> Any:
        return self._values()

    def _do_get_flow_rates(self, params: dict[str, Any]) -> Any:
        self._state(params["profile_id"])
        client = self.counters["client"]
        begun = client.get("tcps_connattempt", 0) + client.get("udps_connects", 0)
        established = client.get("tcps_connects", 0) + client.get("udps_connects", 0)
        rates = {"offered_cps": 0.0, "begun_cps": 0.0, "achieved_cps": 0.0}
        counted = {"begun": begun, "established": established, "missed": self.missed_flows}
        return {**rates, **counted, "duration_s": client.get("m_traffic_duration", 0.0), "hosts": 0}

    def _do_get_flow_outcomes(self, params: dict[str, Any]) -> Any:
        self._state(params["profile_id"])
        sides = {side: self._outcomes_of(side) for side in self.counters}
        names = self.profile(params["profile_id"])["tg_names"] if params["profile_id"] in self._texts else []
        times = {name: self.times.get(name, {"count": 0}) for name in _TIMES}
        return {**sides, "groups": dict.fromkeys(names, sides), "times": times, "applications": []}

    def _outcomes_of(self, side: str) -> dict[str, int]:
        begun = {"client": ("tcps_connattempt", "udps_connects"), "server": ("tcps_accepts", "udps_accepts")}
        flows = sum(int(self.counters[side].get(name, 0)) for name in begun[side])
        failed = sum(self.outcomes[side].get(name, 0) for name in _FAILED)
        found = {"completed": max(flows - failed, 0), **self.outcomes[side]}
        return {name: found.get(name, 0) for name in _OUTCOMES}

    def _counted(self) -> dict[str, MockMetric]:
        known = [(one[0], one[0] in _GAUGES, one[3]) for one in _COUNTERS if one[0] != "m_traffic_duration"]
        outcomes = {side: self._outcomes_of(side) for side in self.counters}
        return {**super()._counted(), **of_flows(self._texts, self.counters, outcomes, known)}

    def _do_get_dynamic_counter_desc(self, _params: dict[str, Any]) -> Any:
        return {"name": "counter desc", "epoch": self.epoch, "data": []}

    def _do_get_dynamic_counter_values(self, params: dict[str, Any]) -> Any:
        return self._dynamic(params)

    def _do_get_total_dynamic_counter_values(self, params: dict[str, Any]) -> Any:
        return self._dynamic(params)

    def _do_get_tg_names(self, params: dict[str, Any]) -> Any:
        if params["initialized"] and params["epoch"] == self.epoch:
            return {"epoch": self.epoch}
        names = self.profile(params["profile_id"])["tg_names"] if params["profile_id"] in self._texts else []
        more: dict[str, list[Any]] = {str(number): [] for number in range(len(names) + 1)}
        return {"epoch": self.epoch, "tg_names": names, "tg_addon_desc": more}

    def _do_get_tg_id_stats(self, params: dict[str, Any]) -> Any:
        if params["epoch"] != self.epoch:
            return {"epoch": self.epoch}
        return {"epoch": self.epoch, **{str(number): self._values() for number in params["tg_ids"]}}

    def _do_get_flow_info(self, _params: dict[str, Any]) -> Any:
        return []

    def _do_get_traffic_dist(self, params: dict[str, Any]) -> Any:
        share = {"start": params["start_ip"], "end": params["end_ip"]}
        return {str(port.index): {"0": share} for port in self._ports if port.index % 2 == 0}

    def _do_topo_get(self, _params: dict[str, Any]) -> Any:
        return {"topo_data": self._topology}

    def _do_topo_fragment(self, params: dict[str, Any]) -> Any:
        self._own(params)
        first = "" if params.get("frag_first") else self._parts.get("topology", "")
        self._parts["topology"] = first + params["fragment"]
        if params.get("frag_last"):
            self._topology = json.loads(self._parts.pop("topology"))

    def _do_topo_clear(self, params: dict[str, Any]) -> Any:
        self._own(params)
        self._topology = {"vifs": None, "gws": None}

    def _do_set_ignored_macs(self, params: dict[str, Any]) -> Any:
        self._ignored["macs"] = params["mac_list"]

    def _do_set_ignored_ips(self, params: dict[str, Any]) -> Any:
        self._ignored["ips"] = params["ip_list"]

    def _do_get_ignored_macs(self, _params: dict[str, Any]) -> Any:
        return self._ignored["macs"]

    def _do_get_ignored_ips(self, _params: dict[str, Any]) -> Any:
        return self._ignored["ips"]

    def _do_enable_disable_client(self, _params: dict[str, Any]) -> Any:
        return {}

    def _do_get_clients_info_start(self, _params: dict[str, Any]) -> Any:
        return None

    def _do_get_clients_info_pull(self, _params: dict[str, Any]) -> Any:
        return {}

    def _do_is_tunnel_supported(self, _params: dict[str, Any]) -> Any:
        return {"is_tunnel_supported": False, "error_msg": "there are no tunnels in this mock"}

    def _own(self, params: dict[str, Any]) -> None:
        if not self._context or params.get("handler") != self._context:
            raise _refused("must acquire the context for this operation")

    def _state(self, profile_id: str) -> int:
        if profile_id not in self._states:
            raise _refused(f"Invalid profile : {profile_id}")
        return self._states[profile_id]

    def _change(self, profile_id: str, state: int, **more: Any) -> None:
        """Change the state of a profile, and tell; the server is in the highest of all."""
        before = max(self._states.values(), default=_IDLE)
        self._states[profile_id] = state
        data = {"profile_id": profile_id, "state": state, "epoch": self.epoch, **more}
        self.publish(EventType.PROFILE_STATE_CHANGED, **data)
        after = max(self._states.values())
        if after != before:
            self.publish(EventType.STATE_CHANGED, state=after, epoch=self.epoch)

    def _values(self) -> dict[str, Any]:
        numbers = {name: number for number, (name, *_) in enumerate(_COUNTERS)}
        sides = {
            side: {str(numbers[name]): value for name, value in values.items()}
            for side, values in self.counters.items()
        }
        return {"name": "counter vals", "epoch": self.epoch, **sides}

    def _dynamic(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["epoch"] != self.epoch:
            return {"epoch_err": self.epoch}
        return {"name": "counter vals", "epoch": self.epoch, "client": {}, "server": {}}


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
