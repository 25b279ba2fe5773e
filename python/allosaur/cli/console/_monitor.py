"""Shows what ports send and receive while the console goes on: a thread with a client of its own."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from allosaur import CapturedPacket, STLClient

_INTERVAL_S = 0.1
_PIPE = "wireshark-pipe"


class Monitor:
    """A capture that is shown. `client` is its own; it is connected here and in the end disconnected."""

    def __init__(self, client: STLClient, capture_id: int, start_s: float, show: Show) -> None:
        self.capture_id = capture_id
        self._client = client
        self._show = show
        self._start_s = start_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="capture monitor", daemon=True)
        client.connect()
        self._thread.start()

    def close(self) -> None:
        """Show what came until now and end."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        try:
            with contextlib.closing(self._show):
                over = False
                while not over:
                    over = self._over.wait(_INTERVAL_S)
                    packets: list[CapturedPacket] = []
                    self._client.fetch_capture_packets(self.capture_id, packets)
                    self._show.packets(packets, self._start_s)
                self._client.stop_capture(self.capture_id)
        except Exception as error:
            if not self._over.is_set():
                print(f"error: the monitor ended: {error}", file=sys.stderr, flush=True)
        finally:
            with contextlib.suppress(Exception):
                self._client.disconnect(stop_traffic=False)


class Show:
    """Packets on the screen: a line each, or all of their fields."""

    def __init__(self, is_verbose: bool = False) -> None:
        self._is_verbose = is_verbose
        self._start_s: float | None = None

    def packets(self, packets: Sequence[CapturedPacket], start_s: float) -> None:
        """Show packets that came."""
        from allosaur.api import Ether

        if self._start_s is None and packets:
            # A port records as soon as it can, which may be before the answer that says when it began.
            self._start_s = min(start_s, *(packet["ts"] for packet in packets))
        for packet in packets:
            decoded = Ether(packet["binary"])
            line = (
                f"#{packet['index']} port {packet['port']} {packet['origin']} "
                f"{packet['ts'] - (self._start_s or 0):.6f} s, {packet['wirelen']} bytes: {decoded.summary()}"
            )
            print(line, flush=True)
            if self._is_verbose:
                print(decoded.show2(dump=True), flush=True)

    def close(self) -> None:
        """End."""


class Written(Show):
    """Packets in a capture file, or in a pipe that Wireshark reads."""

    def __init__(self, path: Path, clock_offset_s: float, open_file: Callable[[], Any]) -> None:
        super().__init__()
        self.path = path
        self._offset_s = clock_offset_s
        self._open = open_file
        self._writer: Any = None

    def packets(self, packets: Sequence[CapturedPacket], start_s: float) -> None:
        """Write packets; those that come before somebody reads the pipe are for nobody."""
        from scapy.utils import PcapWriter  # the client has loaded Scapy by now

        if self._writer is None:
            file = self._open()
            if file is None:
                return
            self._writer = PcapWriter(file, linktype=1, sync=True)
            self._writer.write_header(None)
        for packet in packets:
            whole, rest = divmod(packet["ts"] + self._offset_s, 1.0)
            self._writer.write_packet(
                packet["binary"], sec=int(whole), usec=int(rest * 1e6), wirelen=packet["wirelen"]
            )

    def close(self) -> None:
        """Close the file, and remove a pipe."""
        if self._writer is not None:
            self._writer.close()
        if self.path.name == _PIPE:
            self.path.unlink(missing_ok=True)
            self.path.parent.rmdir()


def to_file(path: Path, clock_offset_s: float) -> Written:
    """Return what writes a pcap file."""
    file = path.open("wb")
    return Written(path, clock_offset_s, lambda: file)


def to_pipe(clock_offset_s: float) -> Written:
    """Return what writes into a pipe, as soon as Wireshark reads it."""
    path = Path(tempfile.mkdtemp(prefix="allosaur-")) / _PIPE
    os.mkfifo(path)

    def opened() -> Any:
        try:
            number = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nobody reads it yet
                return None
            raise
        os.set_blocking(number, True)
        return os.fdopen(number, "wb")

    return Written(path, clock_offset_s, opened)
