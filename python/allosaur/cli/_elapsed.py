"""How long traffic ran, as far as a client can tell: it learns of the start and of the end late."""

from __future__ import annotations


def ran_s(asked_s: float, noticed_s: float, start_took_s: float) -> float:
    """Return how long traffic ran whose end was noticed `noticed_s` after the server had confirmed its start.

    The server started it at an unknown time in the `start_took_s` that the request took. Where the duration
    that was asked for lies within these times, the traffic ended by itself on time, and ran exactly so long:
    the server keeps durations to the microsecond. Else it ended early, and the client's time is all there is.
    """
    return asked_s if noticed_s + start_took_s >= asked_s else noticed_s
