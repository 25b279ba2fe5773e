"""What a client does with ports: own them, ask about them, set them up, read statistics."""

from __future__ import annotations

import time
from typing import Any

from .._errors import STLArgumentError, STLRpcError
from ..streams._stream import STLStream
from ._pgid import active_pgids
from ._places import Ports, numbers
from ._port import PortLoss
from ._server import ServerMethods
from ._session import at_place


class PortMethods(ServerMethods):
    """Ownership, attributes and statistics of ports."""

    def get_all_ports(self) -> list[int]:
        """All ports of the server."""
        return list(self._connection.session().ports)

    def get_port_count(self) -> int:
        """How many ports the server has."""
        return len(self._connection.session().ports)

    def get_active_ports(self, owned: bool = True) -> list[int]:
        """The ports that send or are paused."""
        return self._in_state(("TX", "PAUSE", "PCAP_TX"), owned)

    def get_transmitting_ports(self, owned: bool = True) -> list[int]:
        """The ports that send."""
        return self._in_state(("TX", "PCAP_TX"), owned)

    def get_paused_ports(self, owned: bool = True) -> list[int]:
        """The ports that are paused."""
        return self._in_state(("PAUSE",), owned)

    def is_all_ports_acquired(self) -> bool:
        """Whether this client owns every port."""
        return self.get_acquired_ports() == self.get_all_ports()

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
        chosen = self._connection.ports_of(ports, self.get_all_ports, owned=False)
        # What happened to the ports until now must not be taken for something newer.
        session.drain_events()
        who: dict[str, Any] = {"user": self.username, "session_id": session.session_id, "force": force}
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
        chosen = self._connection.ports_of(ports, self.get_acquired_ports)
        self._connection.each("release", chosen)
        for port_id in chosen:
            self._connection.port(port_id).handler = self._connection.port(port_id).loss = None

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

    def get_port_info(self, ports: Ports = None) -> list[dict[str, Any]]:
        """Facts, settings and state of ports, read from the server now."""
        return [
            self.get_port_attr(port_id)
            for port_id in self._connection.ports_of(ports, self.get_all_ports, owned=False)
        ]

    def get_port_attr(self, port: int) -> dict[str, Any]:
        """Facts, settings and state of one port, read from the server now."""
        (port_id,) = self._connection.ports_of([port], self.get_all_ports, owned=False)
        self._connection.session().refresh(self._connection.port(port_id))
        return self._connection.port(port_id).describe()

    def set_port_attr(
        self,
        ports: Ports = None,
        promiscuous: bool | None = None,
        link_up: bool | None = None,
        led_on: bool | None = None,
        flow_ctrl: int | None = None,
        multicast: bool | None = None,
        vxlan_fs: list[int] | None = None,
        resolve: bool | None = None,
    ) -> None:
        """Set attributes of ports: only those that are given change.

        ``promiscuous`` and ``multicast`` are what the port receives beside its own frames;
        ``flow_ctrl`` is 0 none, 1 send, 2 receive, 3 both; ``vxlan_fs`` are UDP ports of VXLAN whose
        inner packets are counted. ``resolve`` asks for the MAC of the gateway, as ``resolve()``.
        """
        attributes: dict[str, Any] = {}
        for name, attribute, key, value in (
            ("promiscuous", "promiscuous", "enabled", promiscuous),
            ("multicast", "multicast", "enabled", multicast),
            ("link_up", "link_status", "up", link_up),
            ("led_on", "led_status", "on", led_on),
        ):
            if value is not None:
                if not isinstance(value, bool):
                    raise STLArgumentError(name, value, [True, False])
                attributes[attribute] = {key: value}
        if flow_ctrl is not None:
            if isinstance(flow_ctrl, bool) or flow_ctrl not in range(4):
                raise STLArgumentError("flow_ctrl", flow_ctrl, "0 to 3")
            attributes["flow_ctrl_mode"] = {"mode": flow_ctrl}
        if vxlan_fs is not None:
            if not isinstance(vxlan_fs, list) or not all(_is_udp_port(port) for port in vxlan_fs):
                raise STLArgumentError("vxlan_fs", vxlan_fs, "a list of UDP ports, 1 to 65535")
            attributes["vxlan_fs"] = vxlan_fs
        chosen = self._connection.ports_of(ports, self.get_acquired_ports)
        if attributes:
            self._connection.each("set_port_attr", chosen, attr=attributes)
            for port_id in chosen:
                self._connection.session().refresh(self._connection.port(port_id))
        if resolve:
            self._neighbors.resolve(chosen)

    def get_stats(self, ports: Ports = None, sync_now: bool = True) -> dict[Any, Any]:
        """Counters and rates: keys are port numbers, "total", "global", "flow_stats", "latency".

        Bytes are with FCS, rates in bits or packets a second, utilization in percent. With
        ``sync_now=False`` what was read last is returned without asking the server.
        """
        session = self._connection.session()
        chosen = self._connection.ports_of(ports, self._interesting_ports, owned=False)
        if sync_now:
            session.read_stats(chosen)
        return session.stats.to_dict(
            chosen, {port_id: self._connection.port(port_id).speed_bps for port_id in chosen}
        )

    def clear_stats(
        self,
        ports: Ports = None,
        clear_global: bool = True,
        clear_flow_stats: bool = True,
        clear_latency_stats: bool = True,
        clear_xstats: bool = True,
    ) -> None:
        """Count from here. The server goes on counting: only this client's view starts at zero.

        ``clear_xstats`` has nothing to clear: extended statistics are always since the server's start.
        """
        session = self._connection.session()
        chosen = self._connection.ports_of(ports, self._interesting_ports, owned=False)
        session.read_stats(chosen)
        session.stats.clear(chosen, clear_global)
        session.stats.pgids.clear(clear_flow_stats, clear_latency_stats)

    def clear_pgid_stats(self, clear_flow_stats: bool = True, clear_latency_stats: bool = True) -> None:
        """Count packet groups from here; ``clear_stats`` does it, too."""
        session = self._connection.session()
        session.stats.pgids.read(session.rpc, list(session.ports))
        session.stats.pgids.clear(clear_flow_stats, clear_latency_stats)

    def get_active_pgids(self) -> dict[str, list[int]]:
        """The packet groups of all streams on the server: ``flow_stats`` and ``latency``."""
        return active_pgids(self._connection.session().rpc)

    def get_pgid_stats(self, pgid_list: list[int] | None = None) -> dict[str, Any]:
        """Packet groups: the ``flow_stats`` and ``latency`` parts of ``get_stats``, and ``ver_id``.

        Without ``pgid_list`` those of all groups; groups that the server does not have are left out.
        Bytes are with FCS, rates in bits or packets a second, times in microseconds.
        """
        session = self._connection.session()
        session.stats.pgids.read(session.rpc, list(session.ports), pgid_list or None)
        book = session.stats.pgids
        return {"flow_stats": book.flow_stats(), "latency": book.latency(), "ver_id": book.versions()}

    def get_xstats(self, port_id: int) -> dict[str, int]:
        """The counters that the port's driver has, by its own names."""
        (port,) = self._connection.ports_of([port_id], self.get_all_ports, owned=False)
        rpc = self._connection.session().rpc
        names = rpc.call("get_port_xstats_names", port_id=port)["xstats_names"]
        values = rpc.call("get_port_xstats_values", port_id=port)["xstats_values"]
        return dict(zip(names, values, strict=True))

    def get_util_stats(self) -> dict[str, Any]:
        """Use of each data core over the last seconds in percent, and of the packet memory."""
        stats: dict[str, Any] = self._connection.session().rpc.call("get_utilization")
        return stats

    def _interesting_ports(self) -> list[int]:
        return self.get_acquired_ports() or self.get_all_ports()

    def _in_state(self, states: tuple[str, ...], owned: bool) -> list[int]:
        ports = self._connection.session().ports.values()
        return [port.port_id for port in ports if port.state in states and (port.is_acquired or not owned)]

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


def _is_udp_port(port: Any) -> bool:
    return isinstance(port, int) and not isinstance(port, bool) and 1 <= port <= 65_535
