"""Getting at a server and its ports: connecting, and owning ports for as long as a command lasts."""

from __future__ import annotations

import argparse
import contextlib
import getpass
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from allosaur.cli._errors import EXIT_SETUP, CommandError, bad_input, brief, explained

if TYPE_CHECKING:
    from allosaur import ASTFClient, STLClient

Client = TypeVar("Client", bound="STLClient")

LEASE_S = 10.0
"""When a command is killed, what it had started goes on so long at most: then the server stops it."""


@contextlib.contextmanager
def remote_client(options: argparse.Namespace) -> Iterator[STLClient]:
    """Connect to the server that `--server` and `--pub-port` name; disconnect at the end."""
    from allosaur import STLClient

    with remote(options, STLClient) as client:
        yield client


@contextlib.contextmanager
def remote_client_of_any_mode(options: argparse.Namespace) -> Iterator[STLClient]:
    """As `remote_client`, for a server of either kind of traffic; an `ASTFClient` for stateful traffic."""
    from allosaur._errors import WrongModeError

    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(remote_client(options))
        except CommandError as error:
            cause = error.__cause__
            # `connected` says it in its own words.
            if not isinstance(cause.__cause__ if cause else None, WrongModeError):
                raise
            client = stack.enter_context(remote_stateful_client(options))
        yield client


def refuse_options(options: argparse.Namespace, kind: str, *names: str) -> None:
    """Refuse options that the kind of traffic of the server does not have."""
    given = [name for name in names if getattr(options, name.replace("-", "_"), None) not in (None, False)]
    if given:
        raise bad_input(f"--{given[0]} is for {kind}, and the server at {options.server} has none")


@contextlib.contextmanager
def remote_stateful_client(options: argparse.Namespace) -> Iterator[ASTFClient]:
    """As `remote_client`, for a server of stateful traffic."""
    from allosaur import ASTFClient

    with remote(options, ASTFClient) as client:
        yield client


@contextlib.contextmanager
def remote(options: argparse.Namespace, kind: type[Client]) -> Iterator[Client]:
    """Connect a client of this class to the server that the options name; disconnect at the end."""
    address = options.server
    pub_port = options.pub_port if options.pub_port is not None else address.rpc_port - 1
    client = kind(
        username=_user(),
        server=address.host,
        sync_port=address.rpc_port,
        async_port=pub_port,
        verbose_level="error",
    )
    with connected(client, str(address), local_hint=hasattr(options, "local")) as client:
        yield client


@contextlib.contextmanager
def connected(client: Client, name: str, local_hint: bool = True) -> Iterator[Client]:
    """Connect a client to the server that the user knows as `name`; disconnect it at the end."""
    from allosaur._errors import NoServerError, WrongModeError

    try:
        with explained(f"cannot use the server at {name}"):
            client.connect()
            # Commands are about the server, not about the moment in which they looked.
            client.count_since_server_start()
    except CommandError as error:
        if isinstance(error.__cause__, WrongModeError):
            raise bad_input(_other_kind(name, error.__cause__.is_stateful)) from error
        if "publisher" in str(error):
            raise CommandError(
                f"the server at {name} answers, and no events come from where they should: give the "
                "--pub-port that it was started with"
            ) from error
        # What a server that is there says, that it takes no such token, is told as it is.
        if isinstance(error.__cause__, NoServerError):
            hint = ", name another with --server HOST:PORT, or use --local" if local_hint else ""
            hint = hint or ", or name another with --server HOST:PORT"
            raise CommandError(
                f"no server answers at {name}; start one with `allosaur server`{hint}"
            ) from error
        raise
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):
            # What runs on ports that were taken over is not ours to stop: each command stops its own.
            client.disconnect(stop_traffic=False)


def _other_kind(name: str, is_stateful: bool) -> str:
    """Return what to do when the server is for the other kind of traffic."""
    if is_stateful:
        return (
            f"the server at {name} runs flows (--stateful), and this is for streams: start another "
            "with `allosaur server`, or give `allosaur run` a stateful profile"
        )
    return (
        f"the server at {name} sends streams, and this is for flows: start another with "
        "`allosaur server --stateful`, or use `allosaur run PROFILE --local`"
    )


def check_ports(client: STLClient, ports: Sequence[int], option: str = "--ports") -> None:
    """Refuse ports that the server does not have."""
    port_count = client.get_port_count()
    unknown = [str(port) for port in ports if port >= port_count]
    if unknown:
        raise bad_input(
            f"{option}: the server has no port {', '.join(unknown)}; it has ports 0 to {port_count - 1}"
        )


def take(client: STLClient, ports: Sequence[int], force: bool) -> None:
    """Own ports for as long as this program lives, with a hint when somebody else does."""
    from allosaur import STLError

    hint = "" if force else " (--force takes the ports over)"
    try:
        client.acquire(ports=list(ports), force=force, lease_s=LEASE_S)
    except STLError as error:
        raise CommandError(f"cannot take port {names(ports)}: {brief(error)}{hint}", EXIT_SETUP) from error


def refuse_running(client: STLClient, ports: Sequence[int], force: bool) -> None:
    """Refuse ports that send already: somebody started that to go on."""
    running = [port for port in ports if port in client.get_active_ports(owned=False)]
    if running and not force:
        raise CommandError(
            f"port {names(running)} sends already; see `allosaur status`, stop it with `allosaur stop`, "
            "or give --force to replace it",
            EXIT_SETUP,
        )


@contextlib.contextmanager
def service_ports(client: STLClient, ports: Sequence[int], force: bool) -> Iterator[None]:
    """Own ports and have them in service mode inside the block; their service mode is as before after it."""
    take(client, ports, force)
    with contextlib.ExitStack() as stack:
        with explained(f"cannot put port {names(ports)} into service mode"):
            stack.enter_context(client.service_mode(list(ports)))
        yield


def names(ports: Sequence[int]) -> str:
    """Return ports as one says them: `0, 1`."""
    return ", ".join(str(port) for port in ports)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        return "allosaur"
