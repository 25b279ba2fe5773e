"""A kind of traffic on a running server, as the commands that start, change and stop traffic see it."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from allosaur.cli._answer import Answer
from allosaur.cli._errors import CommandError
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER

if TYPE_CHECKING:
    from allosaur import STLClient


@dataclass(frozen=True)
class Started:
    """What a start came to."""

    text: str
    """What goes on now: `Ports 0, 1 send, until it is stopped`."""
    fields: dict[str, Any]
    stats_options: str = ""
    """The options of `allosaur stats` that are about it."""
    stop_options: str = ""
    """Those of `allosaur stop`."""


@dataclass(frozen=True)
class Said:
    """What something came to: a sentence, and fields of the JSON object."""

    text: str
    fields: dict[str, Any] = field(default_factory=dict)


class Traffic(ABC):
    """Traffic of one kind on one server, as options name it.

    Its *units* are what can be stopped by itself: a port with streams, a profile of flows. Call `load` first
    to start something, else nothing; then `connected`, within which all other methods may be called. All
    methods raise :class:`CommandError`.
    """

    title: ClassVar[str]
    """What has it: `streams`, `stateful profiles`."""
    own_options: ClassVar[Sequence[str]] = ()
    """The options that mean nothing for any other kind."""
    no_units: ClassVar[str] = ""
    """What is said when there is nothing to remove."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    @abstractmethod
    def load(self) -> None:
        """Read the profile, and refuse options that are not for this kind: no server is asked."""

    @abstractmethod
    def connected(self) -> AbstractContextManager[object]:
        """Connect to the server for as long as the context lasts."""

    @abstractmethod
    def start(self, interrupt: Interrupt) -> Started:
        """Put the profile that was loaded on the server, and start it."""

    @abstractmethod
    def running(self) -> list[Any]:
        """Return the units that run, of those that the options name."""

    @abstractmethod
    def loaded(self) -> list[Any]:
        """Return the units that are on the server, of those that the options name."""

    @abstractmethod
    def own(self, units: Sequence[Any]) -> None:
        """Own what is to be changed, for as long as the command lasts. What runs goes on after it."""

    @abstractmethod
    def stop(self, units: Sequence[Any]) -> Said:
        """Stop units that run; say what of them is to be said beside their names."""

    @abstractmethod
    def remove(self, units: Sequence[Any]) -> Said:
        """Take units off the server."""

    def check_rate(self) -> None:
        """Refuse a rate that this kind cannot have."""
        return

    def set_rate(self, units: Sequence[Any]) -> Said:
        """Give units that run the rate that the options have."""
        raise CommandError(f"{self.title} have no rate that could be changed")

    @abstractmethod
    def listed(self, units: Sequence[Any]) -> str:
        """Return units as one says them after a verb: `ports 0, 1`."""

    @abstractmethod
    def refuse_to_remove(self, running: Sequence[Any]) -> CommandError:
        """Return the error for who removes what runs."""

    def stats(self) -> Answer:
        """Tell what it counts; nothing where the server's registry of metrics has all of it."""
        return Answer("")

    def client(self) -> STLClient | None:
        """Return the client that reads the registry of metrics; `None` where there is none."""
        return None


def how_long(options: argparse.Namespace) -> str:
    """Return how long what was started goes on."""
    return "until it is stopped" if options.duration == FOREVER else f"for {options.duration:g} s"
