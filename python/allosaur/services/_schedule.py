"""Turns: generators that run side by side in one thread, each until it yields something to wait for.

Time is an argument, in seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Any

from .._errors import STLError

#: The work of one service.
Work = Generator["Wait", Any, Any]


class Wait:
    """Something that a service waits for with ``yield``; ``result`` is what the ``yield`` gives."""

    def __init__(self, due_s: float | None = None) -> None:
        #: When waiting ends at the latest; None is never.
        self.due_s = due_s

    def is_over(self, now_s: float) -> bool:
        """Whether waiting has ended."""
        return self.due_s is not None and now_s >= self.due_s

    def result(self) -> Any:
        """What came of it."""
        return None


class Sending(Wait):
    """Until a packet has left: gives ``{"ts": seconds}``, the server's time then."""

    def __init__(self) -> None:
        super().__init__()
        self._ts: float | None = None

    def is_over(self, now_s: float) -> bool:
        """Whether the packet has left."""
        return self._ts is not None

    def has_left(self, ts: float) -> None:
        """The packet left at this time."""
        self._ts = ts

    def result(self) -> Any:
        """When it left."""
        return {"ts": self._ts}


class Arrival(Wait):
    """Until packets are there, or the time is over: gives a list of packets, empty when none came."""

    def __init__(self, inbox: deque[dict[str, Any]], due_s: float | None, limit: int | None) -> None:
        super().__init__(due_s)
        self._inbox = inbox
        self._limit = limit

    def is_over(self, now_s: float) -> bool:
        """Whether a packet is there, or the time is over."""
        return bool(self._inbox) or super().is_over(now_s)

    def result(self) -> Any:
        """The packets, at most as many as were asked for; the others stay."""
        count = len(self._inbox) if self._limit is None else min(self._limit, len(self._inbox))
        return [self._inbox.popleft() for _ in range(count)]


class _Turn:
    def __init__(self, work: Work) -> None:
        self.work = work
        #: None before the work began.
        self.wait: Wait | None = None


class Schedule:
    """Works, and who of them waits for what."""

    def __init__(self) -> None:
        self._turns: list[_Turn] = []

    def add(self, work: Work) -> None:
        """One more; it begins with the next step."""
        self._turns.append(_Turn(work))

    @property
    def is_done(self) -> bool:
        """Whether all have ended."""
        return not self._turns

    def step(self, now_s: float) -> bool:
        """Let each that can go on do so, once; say whether any did. What a work raises comes out here."""
        ready = [turn for turn in self._turns if turn.wait is None or turn.wait.is_over(now_s)]
        for turn in ready:
            if not self._advance(turn):
                self._turns.remove(turn)
        return bool(ready)

    def expects_packets(self, now_s: float) -> bool:
        """Whether somebody's time for a packet is over now: one may have come that nobody fetched."""
        waits = (turn.wait for turn in self._turns)
        return any(isinstance(wait, Arrival) and wait.is_over(now_s) for wait in waits)

    def next_due_s(self) -> float | None:
        """When the next waiting ends by itself; None when none does."""
        dues = [turn.wait.due_s for turn in self._turns if turn.wait is not None]
        return min((due for due in dues if due is not None), default=None)

    def close(self) -> None:
        """End those that have not."""
        for turn in self._turns:
            turn.work.close()
        self._turns.clear()

    @staticmethod
    def _advance(turn: _Turn) -> bool:
        try:
            turn.wait = next(turn.work) if turn.wait is None else turn.work.send(turn.wait.result())
        except StopIteration:
            return False
        if not isinstance(turn.wait, Wait):
            kind = type(turn.wait).__name__
            raise STLError(
                f"a service yielded an object of type {kind}: yield what a method of its pipe returns"
            )
        return True
