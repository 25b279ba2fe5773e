"""What a service is, and the filter that says which packets are for which service."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NoReturn

from .._errors import STLError

if TYPE_CHECKING:
    from ._pipe import ServicePipe
    from ._schedule import Wait


class STLServiceFilter:
    """Which services a received packet is for. Services of one kind share one filter."""

    def add(self, service: Any) -> None:
        """Take one more service of this kind."""
        raise NotImplementedError(f"{type(self).__name__} needs an add(service)")

    def lookup(self, pkt: bytes) -> list[Any]:
        """The services that a packet is for; often one, or none."""
        raise NotImplementedError(f"{type(self).__name__} needs a lookup(pkt)")

    def get_bpf_filter(self) -> str:
        """The packets that ``lookup`` wants to see, as for tcpdump: the server sends no others."""
        raise NotImplementedError(f"{type(self).__name__} needs a get_bpf_filter()")


class STLService:
    """A program that sends and waits; derive from it.

    ``verbose_level`` is from which level on ``log`` prints: ``INFO`` (1), ``WARN`` (2) or ``ERROR`` (3).
    """

    ERROR = 3
    WARN = 2
    INFO = 1

    def __init__(self, verbose_level: int = ERROR) -> None:
        self.verbose_level = verbose_level

    def get_filter_type(self) -> type[STLServiceFilter]:
        """The class of the filter of services of this kind."""
        raise NotImplementedError(f"{type(self).__name__} needs a get_filter_type()")

    def run(self, pipe: ServicePipe) -> Generator[Wait, Any, Any] | None:
        """Do the work: a generator that yields what the methods of ``pipe`` return."""
        raise NotImplementedError(f"{type(self).__name__} needs a run(pipe)")

    def is_prom_required(self) -> bool:
        """Whether the port must be promiscuous meanwhile: when the service has its own MAC address."""
        return False

    def is_mult_required(self) -> bool:
        """Whether the port must receive all multicast meanwhile."""
        return False

    def err(self, msg: str) -> NoReturn:
        """Give up: raises ``STLError``."""
        raise STLError(msg)

    def set_verbose(self, level: int) -> None:
        """From which level on ``log`` prints."""
        self.verbose_level = level

    def log(self, msg: str, level: int = INFO) -> None:
        """Print a message, if its level is high enough."""
        if level >= self.verbose_level:
            print(msg)
