"""What a client does with BGP speakers: routers of the server's own, which announce tables of routes."""

from __future__ import annotations

from typing import Any

from .._errors import STLError
from ._connection import Connection


class Routes:
    """Speakers, their sessions and what they announce."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def routes_add_speaker(
        self,
        name: str,
        asn: int,
        router_id: str,
        *,
        port: int | None = None,
        node: str | None = None,
        address: str | None = None,
        hold_time_s: int = 90,
        tcp_port: int = 179,
    ) -> None:
        """Make a BGP speaker: on a node of a port (``port`` and its MAC address), or where the server is.

        ``address`` is where its connections come from, one of the node's (default: all of the node's).
        ``hold_time_s`` is 0 for none, else 3 at least. Peers that open the connection find it at
        ``tcp_port``. Raises ``STLError``.
        """
        place = {"port_id": port, "node": node, "address": address}
        given = {key: value for key, value in place.items() if value is not None}
        self._call(
            "routes_add_speaker",
            name=name,
            asn=asn,
            router_id=router_id,
            hold_time_s=hold_time_s,
            tcp_port=tcp_port,
            **given,
        )

    def routes_add_session(self, speaker: str, peer: str, **fields: Any) -> None:
        """Add a session with a peer; it begins to connect.

        ``fields`` are those of the command ``routes_add_session``: ``peer_asn``, ``peer_port``, ``passive``,
        ``md5``, ``next_hop_ipv4``, ``next_hop_ipv6``, ``families``, ``extended_messages``,
        ``restart_time_s``, ``connect_retry_s``. Raises ``STLError``.
        """
        self._call("routes_add_session", speaker=speaker, peer=peer, **fields)

    def routes_announce(
        self, speaker: str, name: str, routes: dict[str, Any], *, rate: int | None = None
    ) -> dict[str, Any]:
        """Announce a table on all sessions of a speaker, now and whenever one comes up.

        ``routes`` says where its routes come from: ``{"from": "range", "first": "198.18.0.0/24", "count":
        1000}``, ``{"from": "seed", "family": "ipv4", "count": 1000000}`` or ``{"from": "mrt", "path":
        "rib.mrt", "family": "ipv4"}``, a file of the server's machine. ``rate`` is in routes per second.
        Gives ``routes``, ``family`` and ``sessions``. Raises ``STLError``.
        """
        given = {} if rate is None else {"rate": rate}
        reply: dict[str, Any] = self._call(
            "routes_announce", speaker=speaker, name=name, routes=routes, **given
        )
        return reply

    def routes_withdraw(self, speaker: str, name: str, *, rate: int | None = None) -> None:
        """Withdraw a table on all sessions of a speaker, and forget it. Raises ``STLError``."""
        given = {} if rate is None else {"rate": rate}
        self._call("routes_withdraw", speaker=speaker, name=name, **given)

    def routes_flap(
        self, speaker: str, name: str, rate: int, *, times: int = 1, share: float = 100.0
    ) -> None:
        """Withdraw ``share`` percent of a table and announce it again, so many times, at a rate per second.

        Raises ``STLError``.
        """
        self._call("routes_flap", speaker=speaker, name=name, rate=rate, times=times, share=share)

    def routes_show(self, speaker: str | None = None) -> list[dict[str, Any]]:
        """Tell all speakers, or one, with tables, sessions, counters and times. Raises ``STLError``."""
        given = {} if speaker is None else {"speaker": speaker}
        return list(self._call("routes_show", **given)["speakers"])

    def routes_remove(self, speaker: str, peer: str | None = None) -> None:
        """End the session with a peer, or remove a speaker with all that it has. Raises ``STLError``."""
        given = {} if peer is None else {"peer": peer}
        self._call("routes_remove", speaker=speaker, **given)

    def _call(self, method: str, **params: Any) -> Any:
        session = self._connection.session()
        if method not in session.supported_commands:
            raise STLError(
                "the server has no BGP speakers: it is not a server of Allosaur's, or an older one"
            )
        return session.rpc.call(method, **params)
