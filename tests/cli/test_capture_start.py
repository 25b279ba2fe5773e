"""How `allosaur capture` begins on a server that wants ports in service mode, as TRex does."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import pytest
from allosaur import STLClient, STLRpcError
from allosaur.cli._errors import CommandError
from allosaur.cli.commands import _capture
from allosaur.testing import MockTransport

OPTIONS = Namespace(filter="udp", snaplen=None, force=False, limit=None)


@pytest.fixture
def transport() -> MockTransport:
    """A server that captures only on ports in service mode."""
    strict = MockTransport()

    def capture(params: dict[str, Any]) -> Any:
        without = [port for port in params.get("rx", []) if not strict._ports[port].service]
        if without:
            raise STLRpcError("", -32000, f"port {without[0]} is not in service mode")
        return strict._do_capture(params)

    strict.answer("capture", capture)
    return strict


@pytest.fixture
def client(transport: MockTransport) -> Iterator[STLClient]:
    with STLClient("alice", transport=transport) as connected:
        yield connected


def test_ports_are_in_service_mode_for_as_long_as_it_lasts(client: STLClient) -> None:
    with contextlib.ExitStack() as stack:
        capture = _capture._start(client, OPTIONS, [0, 1], [], stack)
        assert client.get_service_enabled_ports() == [0, 1]
        assert client.get_capture_status()[capture["id"]]["filter"]["bpf"] == "udp"
    assert client.get_service_enabled_ports() == []


def test_ports_that_are_in_service_mode_are_left_to_their_owner(
    client: STLClient, transport: MockTransport
) -> None:
    client.acquire([1])
    client.set_service_mode([1])
    client.release([1])
    before = len(transport.requests("acquire"))
    with contextlib.ExitStack() as stack:
        _capture._start(client, OPTIONS, [1], [], stack)
    assert len(transport.requests("acquire")) == before
    assert client.get_service_enabled_ports(owned=False) == [1]


def test_ports_of_others_are_asked_for(client: STLClient, transport: MockTransport) -> None:
    transport.refuse("acquire", "port is already taken by 'bob'")
    with contextlib.ExitStack() as stack, pytest.raises(CommandError, match=r"taken by 'bob'.*--force"):
        _capture._start(client, OPTIONS, [0], [], stack)
