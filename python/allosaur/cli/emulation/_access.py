"""Getting at emulated clients: the server, its namespaces, and one client of them."""

from __future__ import annotations

import argparse
import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from allosaur.cli import _options
from allosaur.cli._errors import CommandError, bad_input, explained
from allosaur.cli._options import ServerAddress

if TYPE_CHECKING:
    from allosaur import EMUClient, EMUClientKey, EMUNamespaceKey

CLIENT = "MAC"
"""The metavar of a client's MAC address, by which it is completed."""


def server_arguments(parser: argparse._ActionsContainer) -> None:
    """Add `--server`."""
    parser.add_argument(
        "--server",
        type=_options.emulation_server,
        default=ServerAddress(rpc_port=_options.EMULATION_PORT),
        metavar="HOST[:PORT]",
        help=f"the server, and its port for emulated clients (default: localhost:{_options.EMULATION_PORT})",
    )


def namespace_arguments(parser: argparse.ArgumentParser, which: str) -> None:
    """Add what names namespaces: a port, tags."""
    parser.add_argument("--port", type=_options.number, metavar="N", help=f"the port {which} (default: all)")
    parser.add_argument(
        "--vlan",
        type=_options.vlan,
        metavar="TAG[,TAG]",
        help="the VLAN of its namespace, or two, the outer first (default: all)",
    )


def client_argument(parser: argparse.ArgumentParser, text: str) -> None:
    """Add what names a client."""
    parser.add_argument("--mac", type=_options.mac, metavar=CLIENT, help=text)


@contextlib.contextmanager
def connected(address: ServerAddress) -> Iterator[EMUClient]:
    """Connect to a server of emulated clients; disconnect at the end. Raises :class:`CommandError`."""
    client = connect(address)
    try:
        yield client
    finally:
        client.disconnect()


def connect(
    address: ServerAddress,
    timeout_s: float | None = None,
    level: str = "error",
    logger: logging.Logger | None = None,
) -> EMUClient:
    """Return a client that is connected, and says so much. Raises :class:`CommandError`."""
    from allosaur import EMUClient, STLConnectionError

    client = EMUClient(
        server=address.host,
        sync_port=address.rpc_port,
        sync_timeout=timeout_s,
        verbose_level=level,
        logger=logger,
    )
    try:
        with explained(f"cannot use the emulated clients of {address}"):
            client.connect()
    except CommandError as error:
        if isinstance(error.__cause__, STLConnectionError):
            raise CommandError(
                f"no emulated clients at {address}: start a server with `allosaur server --emu`, or name "
                "another with --server HOST:PORT"
            ) from error
        raise
    return client


def namespaces(client: EMUClient, options: argparse.Namespace) -> list[EMUNamespaceKey]:
    """Return the namespaces that `--port` and `--vlan` mean, all without. Raises :class:`CommandError`."""
    known = client.get_all_ns()
    found = [key for key in known if _is_meant(key, options.port, options.vlan)]
    if not found and (known or options.port is not None or options.vlan is not None):
        there = "; ".join(map(str, known[:10])) or "none"
        asked = "--vlan" if options.vlan is not None else "--port"
        raise bad_input(f"{asked}: there is no such namespace; there are {there} (`allosaur emu show`)")
    return found


def one_client(client: EMUClient, options: argparse.Namespace) -> EMUClientKey:
    """Return the client that `--mac` means, else the first that there is. Raises :class:`CommandError`."""
    keys = namespaces(client, options)
    found = _with_mac(client, keys, options.mac) if options.mac is not None else _first(client, keys)
    if not found and options.mac is None:
        raise bad_input("there are no clients: `allosaur emu load PROFILE` brings some")
    if not found:
        raise bad_input(f"--mac {options.mac}: there is no such client (`allosaur emu show` lists them)")
    if len(found) > 1:
        where = "; ".join(str(key.ns_key) for key in found)
        raise bad_input(f"--mac {options.mac}: is a client of {where}: say which with --port and --vlan")
    return found[0]


def _first(client: EMUClient, keys: Sequence[EMUNamespaceKey]) -> list[EMUClientKey]:
    pages = (page for key in keys for page in client.yield_clients(key, 1))
    return next(pages, [])


def _with_mac(client: EMUClient, keys: Sequence[EMUNamespaceKey], address: str) -> list[EMUClientKey]:
    from allosaur import EMUClientKey, STLRpcError

    found = []
    for key in keys:
        one = EMUClientKey(key, address)
        with contextlib.suppress(STLRpcError):
            client.get_info_clients(one)
            found.append(one)
    return found


def _is_meant(key: EMUNamespaceKey, port: int | None, vlan: Sequence[int] | None) -> bool:
    if port is not None and key.vport != port:
        return False
    return vlan is None or [tag for tag in key.tci if tag] == list(vlan)
