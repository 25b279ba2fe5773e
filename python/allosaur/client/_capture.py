"""What a client does with captures on the server: start, watch, fetch, stop, remove."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .._errors import STLArgumentError, STLError, STLTypeError
from ..packets._buffer import CapturedPacket, decoded
from ..packets._capture_writer import CaptureFile
from ._connection import Connection
from ._places import Ports

_SNAPLEN_MAX = 65_535
_MODES = ("fixed", "cyclic")
_FILE_ENDPOINT = "file:///"
#: How often an endpoint is asked whether it has written everything, and how long it may stand still.
_FLUSH_INTERVAL_S = 0.05
_FLUSH_STALL_S = 1.0

#: Where fetched packets go: a file by name, or a list.
Output = str | Path | list[Any]


class Captures:
    """Captures of what ports send and receive."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def start_capture(
        self,
        tx_ports: Ports = None,
        rx_ports: Ports = None,
        limit: int = 1000,
        mode: str = "fixed",
        bpf_filter: str = "",
        endpoint: str = "",
        snaplen: int = 0,
    ) -> dict[str, Any]:
        """Capture what ``tx_ports`` send and ``rx_ports`` receive. The ports must be in service mode.

        ``limit`` is how many packets to keep; then "fixed" keeps the first of them and "cyclic" the
        last. With ``limit=0`` it only counts: see ``matched`` of ``get_capture_status``.
        ``bpf_filter`` is as for tcpdump. ``snaplen`` is how many bytes of each packet to keep, 0 is
        all. With ``endpoint`` the server writes the packets itself: to a file of its machine
        ("file:///tmp/a.pcapng") or to a socket ("tcp://host:port").

        Returns ``{"id", "ts"}``: the number for the other methods, and the server's time in seconds.
        Raises ``STLError``; a filter that does not compile is refused by the server.
        """
        tx, rx = self._captured_ports(tx_ports), self._captured_ports(rx_ports)
        if not tx and not rx:
            raise STLArgumentError("rx_ports", rx_ports, "at least one port in tx_ports or rx_ports")
        _check_number("limit", limit, None)
        _check_number("snaplen", snaplen, _SNAPLEN_MAX)
        if mode not in _MODES:
            raise STLArgumentError("mode", mode, _MODES)
        if not isinstance(bpf_filter, str):
            raise STLTypeError("bpf_filter", type(bpf_filter), str)
        fields: dict[str, Any] = {"limit": limit, "mode": mode, "tx": tx, "rx": rx, "filter": bpf_filter}
        if endpoint:
            fields["endpoint"] = endpoint
        if snaplen:
            fields["snaplen"] = snaplen
        answer = self._capture("start", **fields)
        return {"id": answer["capture_id"], "ts": answer["start_ts"]}

    def fetch_capture_packets(
        self,
        capture_id: int,
        output: Output,
        pkt_count: int = 1000,
        fetch_limit: int = 50,
        snaplen: int = 0,
    ) -> None:
        """Take packets out of a capture, oldest first, while it goes on or after it was stopped.

        ``output`` is a list, which then holds a ``CapturedPacket`` for each; or the name of a file to
        write, whose times are those of day: pcapng when it ends in ".pcapng", else pcap.
        ``pkt_count`` is how many at most, ``fetch_limit`` how many to ask for at once, ``snaplen``
        how many bytes of each, 0 is all.
        """
        _check_number("pkt_count", pkt_count, None)
        _check_number("snaplen", snaplen, _SNAPLEN_MAX)
        if isinstance(fetch_limit, bool) or not isinstance(fetch_limit, int) or fetch_limit < 1:
            raise STLArgumentError("fetch_limit", fetch_limit, "1 or more")
        self._save(capture_id, output, pkt_count, fetch_limit, snaplen)

    def stop_capture(
        self,
        capture_id: int,
        output: Output | None = None,
        endpoint_cb: Callable[[str], Any] | None = None,
    ) -> None:
        """End a capture, bring its packets to ``output`` (as for ``fetch_capture_packets``), remove it.

        Without ``output`` its packets are thrown away. A capture that the server writes to an
        endpoint is waited for; then ``endpoint_cb`` is called with the endpoint, or a file endpoint
        is copied to the file ``output``, which needs a server on this machine. When the packets cannot
        be saved the capture stays, stopped, and this can be called again.
        """
        _check_output(output, optional=True)
        stopped = self._capture("stop", capture_id=capture_id)
        endpoint = stopped.get("endpoint") or ""
        if endpoint and (output is not None or endpoint_cb is not None):
            self._await_flush(capture_id)
            _take_endpoint(endpoint, output, endpoint_cb)
        elif output is not None:
            self._save(capture_id, output, stopped["pkt_count"])
        self._capture("remove", capture_id=capture_id)

    def get_capture_status(self) -> dict[int, dict[str, Any]]:
        """All captures of the server, by number, those of others included.

        Of each: ``state`` (ACTIVE, STOPPED), ``mode``, ``limit``, ``filter`` (``tx`` and ``rx`` as
        bits of ports, ``bpf``), ``count`` and ``bytes`` kept now, ``matched`` since the start,
        ``fetched`` until now.
        """
        return {capture["id"]: capture for capture in self._capture("status")}

    def endpoint_cb_rsync(self, output: str | Path) -> Callable[[str], int]:
        """What brings a file endpoint here with rsync: for ``endpoint_cb`` of ``stop_capture``.

        The file is fetched from the server's machine, as the user of this client, to ``output``. The
        function returns the exit code of rsync; for an endpoint that is no file it does nothing.
        """
        machine = f"{self._connection.username}@{self._connection.server}"

        def fetch(endpoint: str) -> int:
            if not endpoint.startswith(_FILE_ENDPOINT):
                return 0
            source = f"{machine}:/{endpoint.removeprefix(_FILE_ENDPOINT)}"
            try:
                return subprocess.run(["rsync", source, str(output)], check=False).returncode
            except FileNotFoundError:
                raise STLError(
                    f"rsync, which is to fetch {source}, is not installed: install it, or copy it yourself"
                ) from None

        return fetch

    def clock_offset_s(self) -> float:
        """What must be added to the server's times to make them times of day, in seconds since 1970.

        By this machine's clock, as right as the server answers quickly.
        """
        before_s = time.time()
        server_s = float(self._connection.ping()["ts"])
        return (before_s + time.time()) / 2 - server_s

    def remove_all_captures(self) -> None:
        """Remove all captures of the server, those of others included."""
        self._remove_captures(list(self.get_capture_status()))

    def remove_captures_of(self, ports: list[int]) -> None:
        """Remove the captures on these ports, and leave those on others' ports alone."""
        bits = sum(1 << port for port in ports)
        found = self.get_capture_status().items()
        self._remove_captures([number for number, capture in found if _ports_of(capture) & bits])

    def _remove_captures(self, capture_ids: list[int]) -> None:
        calls = [("capture", {"command": "remove", "capture_id": number}) for number in capture_ids]
        for reply in self._connection.session().rpc.batch(calls) if calls else []:
            reply.unwrap()

    def _capture(self, command: str, **fields: Any) -> Any:
        return self._connection.session().rpc.call("capture", command=command, **fields)

    def _captured_ports(self, ports: Ports) -> list[int]:
        if ports is None or (isinstance(ports, (list, tuple)) and not ports):
            return []
        return self._connection.ports_of(ports, list, owned=False)

    def _save(
        self, capture_id: int, output: Output, count: int, fetch_limit: int = 50, snaplen: int = 0
    ) -> None:
        _check_output(output)
        pages = self._pages(capture_id, count, fetch_limit, snaplen)
        if isinstance(output, list):
            output.clear()
            for packets in pages:
                output.extend(packets)
            return
        offset_s = self.clock_offset_s()
        with CaptureFile(output) as file:
            for packets in pages:
                for packet in packets:
                    file.write(packet, packet["ts"] + offset_s)

    def _pages(
        self, capture_id: int, count: int, fetch_limit: int, snaplen: int
    ) -> Iterator[list[CapturedPacket]]:
        """Packets as the server hands them out."""
        while count > 0:
            answer = self._capture(
                "fetch", capture_id=capture_id, pkt_limit=min(fetch_limit, count), snaplen=snaplen
            )
            packets = [decoded(packet) for packet in answer["pkts"]]
            count -= len(packets)
            yield packets
            if not packets or not answer["pending"]:
                return

    def _await_flush(self, capture_id: int) -> None:
        """Wait until the server has written all of a stopped capture to its endpoint."""
        pending = -1
        still_since = time.monotonic()
        while time.monotonic() - still_since < _FLUSH_STALL_S:
            answer = self._capture("fetch", capture_id=capture_id, pkt_limit=1, snaplen=0)
            if not answer["pending"]:
                return
            if answer["pending"] != pending:
                pending, still_since = answer["pending"], time.monotonic()
            time.sleep(_FLUSH_INTERVAL_S)
        raise STLError(f"capture {capture_id}: the server could not write its last {pending} packets")


def _ports_of(capture: dict[str, Any]) -> int:
    wanted = capture.get("filter") or {}
    return int(wanted.get("tx", 0)) | int(wanted.get("rx", 0))


def _take_endpoint(endpoint: str, output: Output | None, callback: Callable[[str], Any] | None) -> None:
    if callback is not None:
        callback(endpoint)
        return
    source = Path("/" + endpoint.removeprefix(_FILE_ENDPOINT))
    if not endpoint.startswith(_FILE_ENDPOINT) or isinstance(output, list) or output is None:
        raise STLArgumentError("output", output, f"a callback as endpoint_cb: the packets are at {endpoint}")
    try:
        shutil.copyfile(source, output)
    except OSError as error:
        raise STLError(
            f"the packets are at {endpoint} of the server's machine, and cannot be copied from here "
            f"({error.strerror or error}): fetch them yourself, or give endpoint_cb"
        ) from error


def _check_output(output: Any, optional: bool = False) -> None:
    if not isinstance(output, (str, Path, list)) and not (optional and output is None):
        raise STLTypeError("output", type(output), (str, Path, list))


def _check_number(name: str, value: Any, most: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or (most and value > most):
        raise STLArgumentError(name, value, f"0 to {most}" if most else "0 or more")
