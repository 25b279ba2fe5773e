"""A bad link: carries frames between two interfaces, late, lost, doubled and out of order, by a seed.

It is a program (``python bad_link.py ONE OTHER --loss 10 ...``), because a link must not wait for its user;
``BadLink`` starts it in a namespace, and says in the end what passed. For tests only: it carries some 20,000
frames a second. Frames that the kernel left to a card, longer than the MTU or without checksums, do not fit
it: turn that off at the ends (``ethtool -K ... tx off``).
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

# Of linux/if_ether.h, linux/if_packet.h and asm-generic/socket.h.
ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
BUFFER_BYTES = 32 << 20


class BadLink:
    """A bad link between two interfaces of a namespace, while the ``with`` block lasts.

    ``delay_ms`` is each way; ``loss``, ``duplicate`` and ``reorder`` are of a thousand frames; what is
    reordered comes up to ``delay_ms`` later. When the block ends, what is under way is carried still.
    ``passed`` says then what became of the frames: "carried", "lost", "duplicated", "late" and "refused"
    (that could not be sent).
    """

    def __init__(self, namespace: str, ends: tuple[str, str], **faults: float) -> None:
        options = [
            word for name, value in faults.items() for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        inside = ["ip", "netns", "exec", namespace, sys.executable, str(Path(__file__).resolve())]
        self._command = [*inside, *ends, *options]
        self._process: subprocess.Popen[str] | None = None
        self.passed: dict[str, int] = {}

    def __enter__(self) -> BadLink:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        if ready != "ready\n":
            raise RuntimeError(f"the bad link does not start: {self._process.communicate()[1]}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        words, errors = self._process.communicate(timeout=30)
        if self._process.returncode != 0:
            raise RuntimeError(f"the bad link broke: {errors}")
        self.passed = json.loads(words)


class Carrier:
    """Two interfaces, and the frames that are on their way between them."""

    def __init__(self, faults: Any) -> None:
        self._ends = [_open(faults.one), _open(faults.other)]
        self._faults = faults
        self._random = random.Random(faults.seed)
        self._under_way: list[tuple[float, int, int, bytes]] = []
        self._number = 0
        self.passed = dict.fromkeys(("carried", "lost", "duplicated", "late", "refused"), 0)

    def turn(self) -> None:
        """Take what arrived, and send what is due; wait for either, but not for long."""
        wait_s = 0.05
        if self._under_way:
            wait_s = max(0.0, min(wait_s, self._under_way[0][0] - time.monotonic()))
        ready, _, _ = select.select(self._ends, [], [], wait_s)
        now = time.monotonic()
        for end in ready:
            self._take(self._ends.index(end))
        self._send_due(now)

    def empty(self) -> None:
        """Take what has arrived by now, and carry all that is under way."""
        for end in range(len(self._ends)):
            while self._take(end):
                pass
        while self._under_way:
            time.sleep(max(0.0, self._under_way[0][0] - time.monotonic()))
            self._send_due(time.monotonic())

    def _send_due(self, now: float) -> None:
        while self._under_way and self._under_way[0][0] <= now:
            _, _, to, frame = heapq.heappop(self._under_way)
            self._send(to, frame)

    def _take(self, end: int) -> bool:
        """Take some of the frames that arrived at an end; whether there may be more."""
        for _ in range(64):
            try:
                frame = self._ends[end].recv(1 << 16)
            except BlockingIOError:
                return False
            # Read for each frame: one that arrived after the clock was read would be early.
            now = time.monotonic()
            draw = self._random.random() * 1000
            if draw < self._faults.loss:
                self.passed["lost"] += 1
                continue
            draw -= self._faults.loss
            copies = 1
            if draw < self._faults.duplicate:
                self.passed["duplicated"] += 1
                copies = 2
            due = now + self._faults.delay_ms / 1000
            if self._random.random() * 1000 < self._faults.reorder:
                self.passed["late"] += 1
                due += self._random.random() * self._faults.delay_ms / 1000
            for _ in range(copies):
                self._number += 1
                heapq.heappush(self._under_way, (due, self._number, 1 - end, frame))
        return True

    def _send(self, to: int, frame: bytes) -> None:
        try:
            self._ends[to].send(frame)
            self.passed["carried"] += 1
        except OSError:
            self.passed["refused"] += 1


def _open(interface: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    end.bind((interface, 0))
    end.setblocking(False)
    return end


def main(words: Sequence[str]) -> None:
    """Carry frames until the program is told to end, then say what passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("one")
    parser.add_argument("other")
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--loss", type=float, default=0.0)
    parser.add_argument("--duplicate", type=float, default=0.0)
    parser.add_argument("--reorder", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    carrier = Carrier(parser.parse_args(words))
    goes_on = True

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal goes_on
        goes_on = False

    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    while goes_on:
        carrier.turn()
    carrier.empty()
    print(json.dumps(carrier.passed))


if __name__ == "__main__":
    main(sys.argv[1:])
