"""What a client owns: acquire ports, release them, and why they are ours no more."""

from __future__ import annotations

import time
from typing import Any

from .._errors import STLRpcError
from ..streams._stream import STLStream
from ._connection import Connection
from ._places import ALL_PROFILES, Ports, numbers
from ._port import PortLoss
from ._session import at_place


class Ownership:
    """Owning ports."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def acquire(
        self,
        ports: Ports = None,
        force: bool = False,
        sync_streams: bool = True,
        lease_s: float | None = None,
    ) -> None:
        """Own ports; ``force`` takes them from others. ``sync_streams`` learns the streams they have.

        With ``lease_s``, 1 to 3600, the server stops what this client has started and releases the ports
        when it does not hear of the client for so many seconds, because it was killed or cut off. A client
        that is connected is heard by itself.
        Raises ``STLError`` when a port belongs to someone else: all that were free stay acquired.
        """
        session = self._connection.session()
        chosen = self._connection.ports_of(ports, self._connection.all_ports, owned=False)
        # What happened to the ports until now must not be taken for something newer.
        session.drain_events()
        who: dict[str, Any] = {"user": session.username, "session_id": session.session_id, "force": force}
        session.lease_s = lease_s
        if lease_s is not None:
            who["lease_s"] = lease_s
        replies = session.rpc.batch(("acquire", {"port_id": port_id, **who}) for port_id in chosen)
        refused: STLRpcError | None = None
        for port_id, reply in zip(chosen, replies, strict=True):
            if reply.error is None:
                self._connection.port(port_id).handler, self._connection.port(port_id).loss = (
                    str(reply.result),
                    None,
                )
                session.refresh(self._connection.port(port_id))
                if sync_streams:
                    self._sync_streams(port_id)
            elif refused is None:
                refused = at_place(reply.error, port_id)
        if refused is not None:
            raise refused

    def release(self, ports: Ports = None) -> None:
        """Give ports back; without ``ports`` all that are ours."""
        chosen = self._connection.ports_of(ports, self._connection.acquired_ports)
        self._connection.each("release", chosen)
        for port_id in chosen:
            self._connection.port(port_id).handler = self._connection.port(port_id).loss = None

    def let_go(self, stop_traffic: bool, release_ports: bool) -> None:
        """Stop the traffic of the ports that are ours, and release them."""
        owned = self._connection.acquired_ports()
        if stop_traffic:
            active = [port for port in owned if self._connection.port(port).is_active]
            self._connection.each("stop_traffic", active, profile_id=ALL_PROFILES)
        if release_ports:
            self._connection.each("release", owned)

    def why_lost(self, ports: Ports = None) -> str | None:
        """Why what was acquired is ours no more, in a sentence with the time; None while all is well.

        Somebody took a port over, the server released it because a lease was over, or the server is gone.
        """
        if self._connection.live is None:
            return None
        session = self._connection.live
        if session.lost_reason is not None:
            when = time.strftime("%H:%M:%S", time.localtime(session.lost_at))
            _, stopped, cause = session.lost_reason.partition("it stopped: ")
            return f"the server stopped at {when}: {cause}" if stopped else f"the server was lost at {when}"
        chosen = list(session.ports) if ports is None else numbers(ports)
        lost = {port_id: session.ports[port_id].loss for port_id in chosen if port_id in session.ports}
        losses = {port_id: loss for port_id, loss in lost.items() if loss is not None}
        if not losses:
            return None
        return self._loss_words(list(losses), next(iter(losses.values())))

    def _loss_words(self, ports: list[int], loss: PortLoss) -> str:
        what = self._what_is_owned(ports)
        when = time.strftime("%H:%M:%S", time.localtime(loss.ts))
        if loss.who is not None:
            return f"user {loss.who} (session {loss.session_id}) took {what} over at {when}"
        lease_s = self._connection.session().lease_s
        silence = "" if lease_s is None else f": it had not heard of this program for {lease_s:g} s"
        return f"the server released {what} at {when}{silence}"

    def _what_is_owned(self, ports: list[int]) -> str:
        return f"port{'s' if len(ports) > 1 else ''} {', '.join(str(port_id) for port_id in ports)}"

    def _sync_streams(self, port_id: int) -> None:
        answer = self._connection.session().rpc.call("get_all_streams", port_id=port_id, profile_id="*")
        found = (answer or {}).get("profiles") or {}
        port = self._connection.port(port_id)
        for name in {*port.profiles, *found}:
            streams = found.get(name) or {}
            port.profile(name).streams = {
                int(number): STLStream.from_json(fields) for number, fields in streams.items()
            }
        port.next_stream_id = max([0, *port.streams]) + 1
