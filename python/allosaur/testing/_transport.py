"""The server that answers from memory: ownership, streams, states, events."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._errors import NoServerError, STLConnectionError, STLRpcError
from ..client._places import ALL_PROFILES, DEFAULT_PROFILE
from ..rpc._events import EventType
from ..rpc._rpc import decode, encode, pack
from ..rpc._transport import Signal, Subscription
from ._metrics import MockMetric, of_ports, reply
from ._packets import MockPackets

_EXECUTION_ERROR = -32000
_UNKNOWN_METHOD = -32601

#: What makes the result of a method from its parameters.
Handler = Callable[[dict[str, Any]], Any]


class MockTransport(MockPackets):
    """A mock server with ``port_count`` ports.

    With ``auto_finish`` a run with a duration ends at once; without it, and for a run without a
    duration, the test calls ``finish``.
    """

    def __init__(self, port_count: int = 2, auto_finish: bool = False) -> None:
        super().__init__()
        self.address = "mock://server"
        #: Every request that came, as (method, parameters), in order.
        self.calls: list[tuple[str, dict[str, Any]]] = []
        #: The reply of ``get_port_stats`` of each port: change it to what the test needs.
        self.port_stats: list[dict[str, Any]] = [_port_stats() for _ in range(port_count)]
        #: The reply of ``get_global_stats``.
        self.global_stats: dict[str, Any] = {"m_cpu_util": 0.0, "m_tx_pps": 0.0, "m_rx_pps": 0.0}
        #: Further metrics of ``get_metrics`` by name, such as ``allosaur_emulation_clients``.
        self.metrics: dict[str, MockMetric] = {}
        self._ports = [_MockPort(index) for index in range(port_count)]
        self._auto_finish = auto_finish
        self._answers: dict[str, Handler] = {}
        self._refusals: dict[str, tuple[int, str]] = {}
        self._events: list[dict[str, Any]] = []
        self._sequence = 0
        self._silent = False
        self._signals: queue.Queue[Signal] = queue.Queue()

    def answer(self, method: str, result: Any) -> None:
        """Give a method this result from now on.

        A function gets the parameters and makes the result, or raises ``STLRpcError`` to refuse.
        """
        self._answers[method] = result if callable(result) else lambda _params: result

    def refuse(self, method: str, text: str, code: int = _EXECUTION_ERROR) -> None:
        """Refuse a method from now on."""
        self._refusals[method] = (code, text)

    def allow(self, method: str) -> None:
        """Answer a method as at first again."""
        self._answers.pop(method, None)
        self._refusals.pop(method, None)

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Let requests go unanswered, as if the server hung."""
        self._silent = True
        try:
            yield
        finally:
            self._silent = False

    def lose_connection(self) -> None:
        """Go away for good, as if the server was killed."""
        self._silent = True
        self._signals.put(Signal.DISCONNECTED)

    def finish(self, port_id: int, profile_id: str = DEFAULT_PROFILE) -> None:
        """Let the traffic of a port's profile end by itself."""
        port = self._ports[port_id]
        port.profiles[profile_id].state = "STREAMS"
        self.publish(EventType.PROFILE_FINISHED, port_id=port_id, profile_id=profile_id)
        if not port.is_active:
            self.publish(EventType.PORT_FINISHED, port_id=port_id)

    def publish(self, event: int, **data: Any) -> None:
        """Let an event happen, and notify of it."""
        self._events.append({"name": "trex-event", "type": int(event), "data": data, "seq": self._sequence})
        self._sequence += 1
        self._signals.put(Signal.FRAME)

    def methods(self) -> list[str]:
        """The methods of all requests, in order."""
        return [method for method, _params in self.calls]

    def requests(self, method: str) -> list[dict[str, Any]]:
        """The parameters of each request of a method."""
        return [params for name, params in self.calls if name == method]

    def streams(self, port_id: int, profile_id: str = DEFAULT_PROFILE) -> dict[int, dict[str, Any]]:
        """The streams that a profile of a port has, by number."""
        profile = self._ports[port_id].profiles.get(profile_id)
        return dict(profile.streams) if profile else {}

    def open(self, timeout_s: float) -> None:
        """Be there (the client calls it)."""
        if self._silent:
            raise NoServerError(f"no server answers at {self.address}")

    def request(self, payload: bytes, timeout_s: float) -> bytes:
        """Answer one message (the client calls it)."""
        if self._silent:
            raise STLConnectionError(f"no answer from {self.address} within {timeout_s:g} s")
        body = decode(payload)
        answer = [self._one(item) for item in body] if isinstance(body, list) else self._one(body)
        return pack(encode(answer))

    def subscribe(self) -> Subscription:
        """Begin to publish (the client calls it)."""
        self._signals = queue.Queue()
        return _MockSubscription(self._signals)

    def close(self) -> None:
        """End (the client calls it)."""

    def _one(self, request: dict[str, Any]) -> dict[str, Any]:
        method, params = request["method"], request.get("params", {})
        self.calls.append((method, params))
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            return {**reply, "result": self._result(method, params)}
        except STLRpcError as refused:
            message = {"code": refused.code, "message": "Failed To Execute Method"}
            return {**reply, "error": {**message, "specific_err": str(refused)}}

    def _result(self, method: str, params: dict[str, Any]) -> Any:
        if method in self._refusals:
            code, text = self._refusals[method]
            raise STLRpcError(method, code, text)
        handler = self._answers.get(method) or getattr(self, f"_do_{method}", None)
        if handler is None:
            raise STLRpcError(method, _UNKNOWN_METHOD, f"Method {method} not registered")
        return handler(params)

    def _owned(self, params: dict[str, Any]) -> _MockPort:
        port: _MockPort = self._ports[params["port_id"]]
        if port.handler is None:
            raise _refused("please acquire the port before modifying port state")
        if port.handler != params.get("handler"):
            raise _refused("port is not owned by you or your current executing session")
        return port

    def _do_api_sync_v2(self, _params: dict[str, Any]) -> Any:
        return {"api_h": "mock"}

    def _do_ping(self, _params: dict[str, Any]) -> Any:
        return {"ts": 1.0}

    def _do_publish_now(self, _params: dict[str, Any]) -> Any:
        self._signals.put(Signal.FRAME)
        return {}

    def _do_get_async_events(self, _params: dict[str, Any]) -> Any:
        events, self._events = self._events, []
        return {"data": events}

    def _do_get_version(self, _params: dict[str, Any]) -> Any:
        return {"version": "mock", "mode": "STL", "build_date": "", "build_time": "", "built_by": ""}

    def _do_get_system_info(self, _params: dict[str, Any]) -> Any:
        ports = [port.info() for port in self._ports]
        return {"hostname": "mock", "dp_core_count": 1, "port_count": len(ports), "ports": ports}

    def _do_get_supported_cmds(self, _params: dict[str, Any]) -> Any:
        own = [name.removeprefix("_do_") for name in dir(self) if name.startswith("_do_")]
        return sorted({*own, *self._answers})

    def _do_get_port_status(self, params: dict[str, Any]) -> Any:
        return self._ports[params["port_id"]].status()

    def _do_get_global_stats(self, _params: dict[str, Any]) -> Any:
        return self.global_stats

    def _do_get_port_stats(self, params: dict[str, Any]) -> Any:
        return self.port_stats[params["port_id"]]

    def _do_get_metrics(self, params: dict[str, Any]) -> Any:
        return reply({**self._counted(), **self.metrics}, params, time.monotonic_ns())

    def _counted(self) -> dict[str, MockMetric]:
        """Return the metrics of what it counts."""
        return of_ports(dict(enumerate(self.port_stats)))

    def _do_get_utilization(self, _params: dict[str, Any]) -> Any:
        return {"cpu": [{"history": [0] * 20, "ports": [0, 1]}], "mbuf_stats": {}}

    def _do_get_all_streams(self, params: dict[str, Any]) -> Any:
        profiles = self._ports[params["port_id"]].profiles
        numbered = {
            name: {str(number): stream for number, stream in profile.streams.items()}
            for name, profile in profiles.items()
        }
        return {"profiles": {name: streams for name, streams in numbered.items() if streams}}

    def _do_acquire(self, params: dict[str, Any]) -> Any:
        port = self._ports[params["port_id"]]
        if port.handler is not None and not params["force"]:
            raise _refused(f"port is already taken by '{port.owner}'")
        port.owner = params["user"]
        port.handler = f"handler-{port.index}-{len(self.calls)}"
        data = {"who": params["user"], "session_id": params["session_id"], "force": params["force"]}
        self.publish(EventType.PORT_ACQUIRED, port_id=port.index, **data)
        return port.handler

    def _do_release(self, params: dict[str, Any]) -> Any:
        port = self._owned(params)
        port.owner, port.handler = "", None
        return {}

    def _do_set_port_attr(self, params: dict[str, Any]) -> Any:
        self._owned(params).attributes.update(params["attr"])
        return {}

    def _do_service(self, params: dict[str, Any]) -> Any:
        port = self._owned(params)
        port.service, port.filtered = params["enabled"], params["filtered"]
        return {}

    def _do_set_l2(self, params: dict[str, Any]) -> Any:
        layers = self._owned(params).layers
        layers["ether"].update(dst=params["dst_mac"], state="configured")
        layers["ipv4"] = {"state": "none"}
        return {}

    def _do_set_l3(self, params: dict[str, Any]) -> Any:
        layers = self._owned(params).layers
        mac = params.get("resolved_mac", "")
        layers["ipv4"] = {"src": params["src_addr"], "dst": params["dst_addr"]}
        layers["ipv4"]["state"] = "resolved" if mac else "unresolved"
        layers["ether"].update(dst=mac, state="configured" if mac else "unconfigured")
        return {}

    def _do_conf_ipv6(self, params: dict[str, Any]) -> Any:
        layer = {"enabled": params["enabled"], "src": params["src_ipv6"]}
        self._owned(params).layers["ipv6"] = layer if params["enabled"] else {"enabled": False}
        return {}

    def _do_set_vlan(self, params: dict[str, Any]) -> Any:
        self._owned(params).attributes["vlan"] = {"tags": params["vlan"]}
        return {}

    def _do_set_vxlan(self, params: dict[str, Any]) -> Any:
        self._owned(params)
        return {}

    def _do_add_stream(self, params: dict[str, Any]) -> Any:
        port = self._owned(params)
        profile = port.profiles.setdefault(params["profile_id"], _MockProfile())
        profile.streams[params["stream_id"]] = params["stream"]
        profile.state = "STREAMS"
        return {}

    def _do_remove_stream(self, params: dict[str, Any]) -> Any:
        for profile in self._profiles(params):
            if profile.streams.pop(params["stream_id"], None) is None:
                raise _refused(f"stream {params['stream_id']} does not exists")
            profile.state = "STREAMS" if profile.streams else "IDLE"
        return {}

    def _do_remove_all_streams(self, params: dict[str, Any]) -> Any:
        for profile in self._profiles(params):
            profile.streams.clear()
            profile.state = "IDLE"
        return {}

    def _do_start_traffic(self, params: dict[str, Any]) -> Any:
        self._move(params, "start", ("STREAMS",), "TX", EventType.PROFILE_STARTED)
        if self._auto_finish and params["duration"] > 0:
            self.finish(params["port_id"], params["profile_id"])
        return {"multiplier": 1.0, "ts": 1.0}

    def _do_stop_traffic(self, params: dict[str, Any]) -> Any:
        port = self._owned(params)
        for name in self._names(params):
            if port.profiles[name].state in ("TX", "PAUSE"):
                one = {**params, "profile_id": name}
                self._move(one, "stop", ("TX", "PAUSE"), "STREAMS", EventType.PROFILE_STOPPED)
        return {}

    def _do_pause_traffic(self, params: dict[str, Any]) -> Any:
        self._move(params, "pause", ("TX",), "PAUSE", EventType.PROFILE_PAUSED)
        return {}

    def _do_resume_traffic(self, params: dict[str, Any]) -> Any:
        self._move(params, "resume", ("PAUSE",), "TX", EventType.PROFILE_RESUMED)
        return {}

    def _do_update_traffic(self, params: dict[str, Any]) -> Any:
        self._check_state(params, "update", ("TX", "PAUSE"))
        return {"multiplier": 1.0}

    def _do_pause_streams(self, params: dict[str, Any]) -> Any:
        self._check_state(params, "pause_streams", ("TX",))
        return {}

    def _do_resume_streams(self, params: dict[str, Any]) -> Any:
        self._check_state(params, "resume_streams", ("TX",))
        return {}

    def _do_update_streams(self, params: dict[str, Any]) -> Any:
        self._check_state(params, "update_streams", ("TX", "PAUSE"))
        return {"multiplier": 1.0}

    def _move(
        self, params: dict[str, Any], command: str, before: tuple[str, ...], after: str, event: EventType
    ) -> None:
        """Change a profile's state; the port's events are those of a profile, ten less."""
        port = self._owned(params)
        was = port.state
        for profile in self._check_state(params, command, before):
            profile.state = after
        self.publish(event, port_id=port.index, profile_id=params["profile_id"])
        if port.state != was:
            self.publish(EventType(event - 10), port_id=port.index)

    def _check_state(
        self, params: dict[str, Any], command: str, allowed: tuple[str, ...]
    ) -> list[_MockProfile]:
        profiles = self._profiles(params)
        for profile in profiles:
            if profile.state not in allowed:
                raise _refused(
                    f"command '{command}' cannot be executed on current state: "
                    f"'{profile.state} on profile_id({params['profile_id']})'."
                )
        return profiles

    def _profiles(self, params: dict[str, Any]) -> list[_MockProfile]:
        return [self._owned(params).profiles[name] for name in self._names(params)]

    def _names(self, params: dict[str, Any]) -> list[str]:
        name, profiles = params["profile_id"], self._owned(params).profiles
        if name == ALL_PROFILES:
            return list(profiles)
        if name not in profiles:
            raise _refused(f"profile_id {name} does not exists")
        return [name]

    def _do_remove_rx_filters(self, params: dict[str, Any]) -> Any:
        self._owned(params)
        return {}

    def _do_shutdown(self, _params: dict[str, Any]) -> Any:
        return {}


class _MockSubscription:
    def __init__(self, signals: queue.Queue[Signal]) -> None:
        self._signals = signals

    def receive(self) -> Signal:
        return self._signals.get()

    def close(self) -> None:
        self._signals.put(Signal.CLOSED)


class _MockProfile:
    def __init__(self) -> None:
        self.state = "IDLE"
        self.streams: dict[int, dict[str, Any]] = {}


class _MockPort:
    def __init__(self, index: int) -> None:
        self.index = index
        self.owner = ""
        self.handler: str | None = None
        self.profiles = {DEFAULT_PROFILE: _MockProfile()}
        self.attributes: dict[str, Any] = {"promiscuous": {"enabled": False}}
        self.service = False
        self.filtered = False
        self.layers: dict[str, dict[str, Any]] = {
            "ether": {
                "src": f"02:00:00:00:00:{index + 1:02x}",
                "dst": f"02:00:00:00:00:{(index ^ 1) + 1:02x}",
                "state": "configured",
            },
            "ipv4": {"state": "none"},
            "ipv6": {"enabled": False},
        }

    @property
    def state(self) -> str:
        states = {profile.state for profile in self.profiles.values()}
        return next(state for state in ("TX", "PAUSE", "STREAMS", "IDLE") if state in states)

    @property
    def is_active(self) -> bool:
        return self.state in ("TX", "PAUSE")

    def info(self) -> dict[str, Any]:
        facts = {"driver": "mock", "description": "mock", "pci_addr": "N/A", "numa": -1, "supp_speeds": []}
        return {"index": self.index, "is_virtual": True, "is_prom_supported": True, "cores": [0], **facts}

    def status(self) -> dict[str, Any]:
        return {
            "owner": self.owner,
            "state": self.state,
            "state_profile": {name: profile.state for name, profile in self.profiles.items()},
            "max_stream_id": max((max(one.streams, default=0) for one in self.profiles.values()), default=0),
            "service": self.service,
            "service_filtered": self.filtered,
            "attr": {"speed": 10.0, "link": {"up": True}, "layer_cfg": self.layers, **self.attributes},
        }


def _refused(text: str) -> STLRpcError:
    return STLRpcError("", _EXECUTION_ERROR, text)


def _port_stats() -> dict[str, Any]:
    counters = dict.fromkeys(("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors"), 0)
    rates = dict.fromkeys(("m_total_tx_bps", "m_total_tx_pps", "m_total_rx_bps", "m_total_rx_pps"), 0.0)
    return {**counters, **rates}
