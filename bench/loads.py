"""Stateful profiles that only benchmarks need."""

from __future__ import annotations

from typing import Any

from allosaur import (
    ASTFAssociationRule,
    ASTFGlobalInfo,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)

REQUEST = b"GET / HTTP/1.1\r\nHost: site.example\r\nX-Fill: "
REQUEST_BYTES = 100
#: Not those of the example profiles: two profiles side by side do not know of each other's ports.
CLIENTS = ("17.0.0.1", "17.0.0.254")
#: The server's port of flows that stay: who asks the usual one shall meet another program.
SILENT_PORT = 8080
#: More than anybody opens: the limit of flows is what holds.
ENOUGH_CPS = 1_000_000
#: Longer than any benchmark, within what the server takes.
NEVER_S = 60_000


def always(
    client: ASTFProgram,
    server: ASTFProgram,
    at_once: int,
    servers: tuple[str, str] = ("48.0.0.1", "48.0.255.254"),
) -> ASTFProfile:
    """So many flows at a time: one that ends makes room for the next."""
    return _profile(client, server, servers, cps=ENOUGH_CPS, limit=at_once, cont=True)


def responses(size: int, at_once: int) -> ASTFProfile:
    """A request and a long response a connection, so many connections at a time."""
    client, server = ASTFProgram(), ASTFProgram()
    client.send(REQUEST, size=REQUEST_BYTES, fill="x")
    client.recv(size)
    # The server closes first, and remembers the connection: at the client it would stand in the limit.
    client.wait_for_peer_close()
    server.set_send_blocking(False)
    server.recv(REQUEST_BYTES)
    server.send(b"*", size=size, fill="*")
    return always(client, server, at_once)


def silent(flows: int, cps: float) -> ASTFProfile:
    """So many connections that say hello to each other, and nothing from then on, not even to keep alive."""
    client, server = ASTFProgram(), ASTFProgram()
    client.send(b"hello")
    client.recv(5)
    client.wait_for_peer_close()
    server.recv(5)
    server.send(b"hello")
    server.wait_for_peer_close()
    info = ASTFGlobalInfo()
    info.tcp.keepidle = info.tcp.keepinit = NEVER_S
    return _profile(client, server, ("48.0.0.1", "48.0.255.254"), info, SILENT_PORT, cps=cps, limit=flows)


def _profile(
    client: ASTFProgram,
    server: ASTFProgram,
    servers: tuple[str, str],
    info: ASTFGlobalInfo | None = None,
    port: int = 80,
    **rate: Any,
) -> ASTFProfile:
    ip_gen = ASTFIPGen(dist_client=ASTFIPGenDist(list(CLIENTS)), dist_server=ASTFIPGenDist(list(servers)))
    template = ASTFTemplate(
        client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=port, **rate),
        server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port)),
    )
    return ASTFProfile(
        default_ip_gen=ip_gen, default_c_glob_info=info, default_s_glob_info=info, templates=template
    )
