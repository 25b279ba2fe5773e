"""Keeps Scapy from warning of missing routes.

Scapy looks up a route for what a packet leaves open, and warns when there is none, as on lab machines without
a default route. The packets of this package go out of named ports and need no route. All else that Scapy
says stays. Imports no Scapy: its logger is known by name before Scapy is loaded.
"""

from __future__ import annotations

import logging

_WORDS = "No route found for IP"
"""Scapy itself may put `more` before them, when it says so again and again."""


def silence_routes() -> None:
    """Drop Scapy's warnings of missing routes, from now on."""
    logger = logging.getLogger("scapy.runtime")
    if _is_about_more not in logger.filters:
        logger.addFilter(_is_about_more)


def _is_about_more(record: logging.LogRecord) -> bool:
    return _WORDS not in str(record.msg)
