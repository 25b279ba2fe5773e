"""The packet side of ``allosaur.testing``: service mode, captures, receive queues, pushed packets."""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .._errors import STLRpcError

_EXECUTION_ERROR = -32000
_BAD_PARAMETERS = -32602


@dataclass
class _Capture:
    tx: list[int]
    rx: list[int]
    bpf: str
    limit: int
    mode: str
    endpoint: str
    start_ts: float
    active: bool = True
    matched: int = 0
    fetched: int = 0
    packets: deque[dict[str, Any]] = field(default_factory=deque)

    def take(self, packet: dict[str, Any]) -> None:
        ports = self.tx if packet["origin"] == "TX" else self.rx
        if not self.active or packet["port"] not in ports:
            return
        self.matched += 1
        if len(self.packets) >= self.limit and self.mode == "cyclic" and self.limit:
            self.packets.popleft()
        if len(self.packets) < self.limit:
            self.packets.append({**packet, "index": self.matched})


class MockPackets:
    """Packets in and out of the ports of a ``MockTransport``."""

    def __init__(self) -> None:
        #: Every pushed frame, as (port, bytes), in order.
        self.pushed: list[tuple[int, bytes]] = []
        #: Called with the port and the bytes of each pushed frame: a host that answers, for example.
        self.on_push: Callable[[int, bytes], None] | None = None
        self._captures: dict[int, _Capture] = {}
        self._capture_count = 0
        self._queues: dict[int, deque[dict[str, Any]]] = {}
        self._clock_s = 1.0

    def receive(self, port_id: int, frame: bytes) -> None:
        """Let a port receive a frame: it goes to captures (whatever their filters are) and its queue."""
        self._see(port_id, frame, "RX")

    def _see(self, port_id: int, frame: bytes, origin: str) -> float:
        self._clock_s += 0.001
        packet = {
            "binary": base64.b64encode(frame).decode(),
            "ts": self._clock_s,
            "port": port_id,
            "index": 0,
            "wirelen": len(frame),
            "origin": origin,
        }
        for capture in self._captures.values():
            capture.take(packet)
        if origin == "RX" and port_id in self._queues:
            self._queues[port_id].append(packet)
        return self._clock_s

    def _do_push_pkts(self, params: dict[str, Any]) -> Any:
        times = []
        for packet in params["pkts"]:
            frame = base64.b64decode(packet["binary"])
            self.pushed.append((params["port_id"], frame))
            times.append(self._see(params["port_id"], frame, "TX"))
            if self.on_push is not None:
                self.on_push(params["port_id"], frame)
        return {"sent": len(times), "ts": times[0]}

    def _do_set_rx_feature(self, params: dict[str, Any]) -> Any:
        if params["enabled"]:
            self._queues[params["port_id"]] = deque(maxlen=params["size"])
        else:
            self._queues.pop(params["port_id"], None)
        return {}

    def _do_get_rx_queue_pkts(self, params: dict[str, Any]) -> Any:
        queue = self._queues.get(params["port_id"])
        if queue is None:
            raise STLRpcError("", _EXECUTION_ERROR, "RX queue is not active")
        packets = list(queue)
        queue.clear()
        return {"pkts": packets}

    def _do_capture(self, params: dict[str, Any]) -> Any:
        commands: dict[str, Callable[[dict[str, Any]], Any]] = {
            "start": self._start_capture,
            "stop": self._stop_capture,
            "fetch": self._fetch_capture,
            "status": self._capture_status,
            "remove": self._remove_capture,
        }
        return commands[params["command"]](params)

    def _start_capture(self, params: dict[str, Any]) -> Any:
        self._capture_count += 1
        self._captures[self._capture_count] = _Capture(
            params["tx"],
            params["rx"],
            params.get("filter", ""),
            params["limit"],
            params["mode"],
            params.get("endpoint", ""),
            self._clock_s,
        )
        return {"capture_id": self._capture_count, "start_ts": self._clock_s}

    def _stop_capture(self, params: dict[str, Any]) -> Any:
        capture = self._capture(params)
        capture.active = False
        return {"pkt_count": len(capture.packets), "endpoint": capture.endpoint}

    def _fetch_capture(self, params: dict[str, Any]) -> Any:
        capture = self._capture(params)
        count = min(params["pkt_limit"], len(capture.packets))
        packets = [capture.packets.popleft() for _ in range(count)]
        capture.fetched += count
        return {"pending": len(capture.packets), "start_ts": capture.start_ts, "pkts": packets}

    def _capture_status(self, _params: dict[str, Any]) -> Any:
        return [
            {
                "id": number,
                "state": "ACTIVE" if capture.active else "STOPPED",
                "matched": capture.matched,
                "fetched": capture.fetched,
                "count": len(capture.packets),
                "bytes": sum(packet["wirelen"] for packet in capture.packets),
                "limit": capture.limit,
                "mode": capture.mode,
                "filter": {
                    "tx": sum(1 << port for port in capture.tx),
                    "rx": sum(1 << port for port in capture.rx),
                    "bpf": capture.bpf,
                },
            }
            for number, capture in self._captures.items()
        ]

    def _remove_capture(self, params: dict[str, Any]) -> Any:
        self._capture(params)
        del self._captures[params["capture_id"]]
        return {}

    def _capture(self, params: dict[str, Any]) -> _Capture:
        capture = self._captures.get(params["capture_id"])
        if capture is None:
            raise STLRpcError("", _BAD_PARAMETERS, f"capture ID {params['capture_id']} does not exist")
        return capture
