"""Stateful profiles for tests with real stacks, servers of ours that run them, and what they counted."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from allosaur import (
    TLS,
    ASTFAssociationRule,
    ASTFClient,
    ASTFGlobalInfo,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)
from allosaur.server import LocalServer

PATIENCE_S = 60.0
# What a busy machine makes happen on a wire without faults: an end waits for 200 ms and sends again;
# and frames that two CPUs send change places, because veth has a queue for each.
UNTIMELY = (
    "tcps_rexmttimeo",
    "tcps_rexmttimeo_syn",
    "tcps_sndrexmitpack",
    "tcps_rcvduppack",
    "tcps_rcvoopack",
)
# Counters that stay 0 when nothing goes wrong.
ERRORS = (
    "tcps_conndrops",
    "tcps_timeoutdrop",
    "tcps_drops",
    "tcps_rcvbadsum",
    "tcps_rcvbadoff",
    "tcps_rcvshort",
    "tcps_badsyn",
    "tcps_persistdrop",
    "tcps_keepdrops",
    "tcps_rexmttimeo",
    "tcps_rexmttimeo_syn",
    "tcps_sndrexmitpack",
    "tcps_rcvoopack",
    "tcps_rcvduppack",
    "err_cwf",
    "err_no_syn",
    "err_len_err",
    "err_no_template",
    "err_no_memory",
    "err_l3_cs",
    "err_l4_cs",
    "err_redirect_rx",
    "err_c_tuple_err",
    "err_flow_overflow",
    "err_fragments_ipv4_drop",
)
Traffic = Mapping[str, Mapping[str, float]]


def get(name: str, extra: str = "") -> bytes:
    """A request for a file, with more header lines."""
    return f"GET /{name} HTTP/1.1\r\nHost: web.example\r\n{extra}\r\n".encode()


def answer(content: bytes) -> bytes:
    """A response with a body."""
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\nContent-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode() + content


def asks(request: bytes, response_bytes: int, times: int = 1) -> ASTFProgram:
    """A client that asks so many times on each connection."""
    program = ASTFProgram()
    if times > 1:
        program.set_var("left", times)
        program.set_label("again")
    program.send(request)
    program.recv(response_bytes, clear=True)
    if times > 1:
        program.jmp_nz("left", "again")
    return program


def asks_until_close(request: bytes) -> ASTFProgram:
    """A client that asks once, and reads until the server closes."""
    program = ASTFProgram()
    program.send(request)
    program.recv_until_close()
    return program


def answers(request_bytes: int, response: bytes, again: bool = False) -> ASTFProgram:
    """A server that answers once, or with ``again`` as often as it is asked."""
    program = ASTFProgram()
    if again:
        program.set_label("again")
    program.recv(request_bytes, clear=True)
    program.send(response)
    if again:
        program.jmp("again")
    return program


def profile(
    client: ASTFProgram,
    server: ASTFProgram,
    clients: Sequence[str] | ASTFIPGenDist = ("16.0.0.1", "16.0.0.254"),
    servers: Sequence[str] = ("48.0.0.1", "48.0.0.1"),
    cps: float = 1000,
    limit: int | None = None,
    port: int = 80,
    prefixes: tuple[str, str] | None = None,
    tls: tuple[TLS | None, TLS | None] = (None, None),
    **tcp: int,
) -> ASTFProfile:
    """A profile with one template; ``prefixes`` are those of IPv6, ``tls`` is of clients, servers."""
    ip_gen = ASTFIPGen(
        dist_client=clients if isinstance(clients, ASTFIPGenDist) else ASTFIPGenDist(list(clients)),
        dist_server=ASTFIPGenDist(list(servers)),
    )
    sides = [ASTFGlobalInfo(), ASTFGlobalInfo()]
    for side in sides:
        for name, value in tcp.items():
            setattr(side.tcp, name, value)
        if prefixes:
            side.ipv6.enable = 1
            side.ipv6.src_msb, side.ipv6.dst_msb = prefixes
    template = ASTFTemplate(
        client_template=ASTFTCPClientTemplate(
            program=client, ip_gen=ip_gen, port=port, cps=cps, limit=limit, tls=tls[0]
        ),
        server_template=ASTFTCPServerTemplate(
            program=server, assoc=ASTFAssociationRule(port=port), tls=tls[1]
        ),
    )
    return ASTFProfile(
        default_ip_gen=ip_gen,
        default_c_glob_info=sides[0],
        default_s_glob_info=sides[1],
        templates=template,
    )


@contextlib.contextmanager
def generator(
    ports: Sequence[str], hosts: Sequence[Any] = (), cores: int = 1, options: Sequence[str] = ()
) -> Iterator[ASTFClient]:
    """A stateful server on these ports; those that hosts are behind have addresses and a gateway."""
    with (
        LocalServer(ports=ports, cores=cores, stateful=True, options=options) as server,
        server.client() as client,
    ):
        assert isinstance(client, ASTFClient)
        client.reset()
        join(client, ports, hosts)
        yield client


def join(client: ASTFClient, ports: Sequence[str], hosts: Sequence[Any]) -> None:
    """Give the ports that hosts are behind their addresses and a gateway."""
    client.set_service_mode(enabled=True)
    for host in hosts:
        port = [name.removeprefix("af_xdp:") for name in ports].index(host.near)
        client.set_l3_mode(port=port, src_ipv4=host.port_address, dst_ipv4=host.address)
    client.set_service_mode(enabled=False)


def send_to(client: ASTFClient, device: Any) -> None:
    """Let both ports send to the device between them, a ``device.Device``."""
    client.set_service_mode(enabled=True)
    for port in (0, 1):
        client.set_l2_mode(port=port, dst_mac=device.mac(port))
    client.set_service_mode(enabled=False)


def start(client: ASTFClient, what: ASTFProfile, duration: float = -1) -> None:
    """Load a profile in the place of all others, and start it."""
    client.reset()
    client.load_profile(what)
    client.clear_stats()
    client.start(duration=duration)


def run(client: ASTFClient, what: ASTFProfile, duration: float = -1) -> Traffic:
    """Run a profile until all its flows are over. Gives what its clients and servers counted."""
    start(client, what, duration)
    client.wait_on_traffic(timeout=PATIENCE_S)
    return counted(client)


def finished(client: ASTFClient, connections: int) -> Traffic:
    """What was counted, once so many connections came and all are over; then the profile is stopped."""

    def are_over() -> bool:
        servers = counted(client)["server"]
        return servers["tcps_accepts"] >= connections and servers["tcps_closed"] == servers["tcps_accepts"]

    wait_until(are_over)
    client.stop()
    client.wait_on_traffic(timeout=PATIENCE_S)
    return counted(client)


def wait_until(what: Callable[[], bool]) -> None:
    """Wait until something is so, or for too long; who waits looks again at what he wants."""
    until = time.monotonic() + PATIENCE_S
    while not what() and time.monotonic() < until:
        time.sleep(0.05)


def counted(client: ASTFClient) -> Traffic:
    """What clients and servers counted: ``["client"]["tcps_connects"]``, ...; 0 where nothing was."""
    return client.get_traffic_stats(skip_zero=False)


def errors(traffic: Traffic, *allowed: str) -> dict[str, dict[str, float]]:
    """What went wrong by our own counters, but for those that may."""
    found = {
        side: {name: counters[name] for name in ERRORS if counters.get(name) and name not in allowed}
        for side, counters in traffic.items()
    }
    return {side: counters for side, counters in found.items() if counters}
