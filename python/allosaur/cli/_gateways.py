"""Gateways: traffic starts when those of its ports have answered, or says which did not."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from allosaur.cli._errors import EXIT_SETUP, CommandError, explained
from allosaur.cli._interrupt import Interrupt

if TYPE_CHECKING:
    from allosaur import ASTFClient, STLClient

WAIT_S = 10.0
"""How long a start waits for gateways. A port asks for its gateway from when the server starts."""
_POLL_INTERVAL_S = 0.1


def wait(client: STLClient, ports: Sequence[int], interrupt: Interrupt, force: bool = False) -> None:
    """Wait until the gateways of these ports are known, or a signal comes.

    Raises :class:`CommandError` with those that did not answer; with `force` the traffic starts without them.
    """
    deadline = time.monotonic() + WAIT_S
    while silent := _silent(client, ports):
        if interrupt:
            return
        if time.monotonic() >= deadline:
            if force:
                return
            raise CommandError(_problem(client, silent), EXIT_SETUP)
        interrupt.sleep(_POLL_INTERVAL_S)


def of_streams(client: STLClient, ports: Sequence[int]) -> list[int]:
    """Return the ports with a stream that goes where the port goes: others name their own MAC address."""
    return [
        port
        for port in ports
        if any(not stream.is_explicit_dst_mac() for stream in client.get_port(port).streams.values())
    ]


def of_flows(client: ASTFClient, client_mask: int) -> list[int]:
    """Return the ports that have a part in flows: the clients that open some, and all servers."""
    return [port for port in client.get_all_ports() if port % 2 or client_mask >> port & 1]


def _silent(client: STLClient, ports: Sequence[int]) -> list[int]:
    """Return the ports whose gateway has not answered, as the server knows it now."""
    silent = []
    with explained("cannot ask for the gateways"):
        for number in ports:
            port = client.get_port(number)
            if port.is_l3 and not port.is_resolved:
                client.get_port_attr(number)  # reads it anew
                silent += [number] if not port.is_resolved else []
    return silent


def _problem(client: STLClient, silent: Sequence[int]) -> str:
    who = ", ".join(f"port {port}: gateway {client.get_port(port).dst_ipv4}" for port in silent)
    return (
        f"{who} did not answer ARP for {WAIT_S:g} s; see that the device is up and linked with the port, and "
        f"that the address is its own (default_gw), and ask again: `allosaur arp --port {silent[0]}`"
    )
