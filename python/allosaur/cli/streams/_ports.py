"""Which ports a command about streams is for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from allosaur.cli._access import check_ports

if TYPE_CHECKING:
    from allosaur import STLClient


def chosen(
    client: STLClient, options: argparse.Namespace, fitting: Callable[[STLClient], list[int]]
) -> list[int]:
    """Return the ports that fit; with `--ports` those of them that it names."""
    if options.ports is None:
        return fitting(client)
    check_ports(client, options.ports)
    return [port for port in options.ports if port in fitting(client)]


def sending_ports(client: STLClient) -> list[int]:
    """Return the ports that send or are paused, whoever owns them."""
    return client.get_active_ports(owned=False)


def loaded_ports(client: STLClient) -> list[int]:
    """Return the ports that have streams, whoever owns them."""
    return [number for number, port in client.ports.items() if port.state != "IDLE"]
