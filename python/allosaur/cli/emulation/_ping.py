"""A ping of an emulated client, from the first request until all are answered or have waited long enough."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from allosaur.cli._errors import explained

if TYPE_CHECKING:
    from allosaur import EMUClient, EMUClientKey

_NAP_S = 0.05
_STATS = "icmp_ping_stats"
AMOUNT, PACE, TIMEOUT_S, SIZE = 5, 1.0, 5, 16
"""What a ping does that is told nothing."""


def ping(
    client: EMUClient,
    key: EMUClientKey,
    settings: dict[str, Any],
    is_ipv6: bool,
    nap: Callable[[float], object] = time.sleep,
    is_over: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Ping and return what the server counted; stops when ``is_over``. Raises :class:`CommandError`."""
    plugin = client.ipv6 if is_ipv6 else client.icmp
    with explained(f"client {key.mac} cannot ping"):
        _raised(plugin.start_ping(key, **settings))
    stats: dict[str, Any] = {}
    ended_s: float | None = None
    while not is_over():
        found, error = plugin.get_ping_stats(key)
        if error is not None:
            # The server forgets them some time after the last request.
            break
        stats = found.get(_STATS, {})
        answered = stats.get("repliesInOrder", 0) + stats.get("repliesOutOfOrder", 0)
        if not stats.get("requestsLeft") and stats.get("requestsSent"):
            ended_s = ended_s or time.monotonic()
            refused = stats.get("dstUnreachable", 0)
            if (
                answered + refused >= stats["requestsSent"]
                or time.monotonic() - ended_s > settings["timeout"]
            ):
                break
        nap(_NAP_S)
    with contextlib.suppress(Exception):
        plugin.stop_ping(key)
    return stats


def _raised(outcome: tuple[Any, Any]) -> Any:
    result, error = outcome
    if error is not None:
        raise error
    return result
