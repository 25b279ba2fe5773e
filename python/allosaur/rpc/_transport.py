"""The two ways to a server: requests with an answer, and published notifications.

The client is written against the protocol ``Transport``. Over ZeroMQ it is ``ZmqTransport``;
``allosaur.testing`` has one without any server.
"""

from __future__ import annotations

import contextlib
import enum
import socket as tcp
import time
import weakref
from typing import Any, Protocol

import zmq
from zmq.utils.monitor import recv_monitor_message

from .._errors import NoServerError, STLConnectionError
from ._credentials import ENVIRONMENT, Credentials

_HEARTBEAT_INTERVAL_MS = 5_000
_HEARTBEAT_TIMEOUT_MS = 60_000
_RECONNECT_MS = 20
_RECONNECT_MS_MAX = 500
_SILENT_S = 0.25
"""After so long without an answer, then after twice as long and so on, see whether the server is there."""
_LOOK_TIMEOUT_S = 0.5
_HANDSHAKE_FAILED = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)
"""Who speaks another mechanism than the server does not learn more than that the connection is closed."""


class Signal(enum.Enum):
    """Why ``Subscription.receive`` came back."""

    FRAME = "frame"
    DISCONNECTED = "disconnected"
    CLOSED = "closed"


class Subscription(Protocol):
    """The server's published frames. Only that one came matters: each says to fetch what is new."""

    def receive(self) -> Signal:
        """Wait for the next signal. After ``close`` it returns ``Signal.CLOSED``."""

    def close(self) -> None:
        """End it: a ``receive`` that waits in another thread comes back."""


class Transport(Protocol):
    """How messages travel. ``address`` is for messages to the user."""

    address: str

    def open(self, timeout_s: float) -> None:
        """Find the server. Raises ``STLConnectionError`` when there is none."""

    def request(self, payload: bytes, timeout_s: float) -> bytes:
        """Send one message and wait for its answer.

        Raises ``STLConnectionError`` when none came in time, or as soon as the server is known to be gone;
        the next request starts afresh.
        """

    def subscribe(self) -> Subscription:
        """Begin to listen to what the server publishes."""

    def close(self) -> None:
        """Let go of everything. May be called twice."""


class ZmqTransport:
    """A REQ and a SUB socket to a server on the network, with a name and token for one that asks."""

    def __init__(
        self, host: str, rpc_port: int, pub_port: int, credentials: Credentials | None = None
    ) -> None:
        self.address = f"tcp://{host}:{rpc_port}"
        self._host = host
        self._rpc_port = rpc_port
        self._pub_address = f"tcp://{host}:{pub_port}"
        self._credentials = credentials
        self._sockets: _Sockets | None = None
        self._socket: zmq.Socket[bytes] | None = None

    def open(self, timeout_s: float) -> None:
        """Find the server.

        ZeroMQ connects in the background and never says "refused", so a plain TCP connection is
        tried first: a server that is not there is then reported at once, and with the reason.
        """
        try:
            self._connect_plain(timeout_s)
        except OSError as error:
            reason = error.strerror or str(error)
            raise NoServerError(
                f"no server answers at {self.address} ({reason}): start one with "
                f"'allosaur server --ports memory,memory', or give the right server and sync_port"
            ) from error
        self._sockets = _Sockets()
        # For a client that nobody disconnects: a context that is collected before its sockets waits for
        # them without an end.
        weakref.finalize(self, self._sockets.close)

    def request(self, payload: bytes, timeout_s: float) -> bytes:
        """Send one message and wait for its answer, for so long with the way to the server.

        ZeroMQ waits for a server that ended until it is back. It would not know of the message.
        """
        deadline = time.monotonic() + timeout_s
        socket = self._socket or self._admitted_socket(deadline)
        # A REQ socket that waits for an answer cannot send again: it is kept only once it has one,
        # so that after a timeout or an interruption the next request takes a fresh socket.
        self._socket = None
        try:
            socket.send(payload)
            if not self._poll(socket, deadline):
                raise STLConnectionError(
                    f"no answer from {self.address} within {timeout_s:g} s: see whether the server "
                    f"still runs, or give a longer sync_timeout"
                )
            answer = socket.recv()
        except BaseException:
            socket.close(linger=0)
            raise
        self._socket = socket
        return answer

    def subscribe(self) -> Subscription:
        """Begin to listen to what the server publishes."""
        subscriber = self._fresh_socket(zmq.SUB, None)
        return _ZmqSubscription(self._opened(), subscriber, self._pub_address)

    def close(self) -> None:
        """Let go of everything."""
        self._socket = None
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None

    def _poll(self, socket: zmq.Socket[bytes], deadline: float) -> bool:
        """Whether something arrived until the deadline. Raises ``STLConnectionError`` where no server is."""
        silent_s = _SILENT_S
        while (left_s := deadline - time.monotonic()) > silent_s:
            if socket.poll(int(silent_s * 1000)):
                return True
            self._see_server(min(_LOOK_TIMEOUT_S, max(0.0, deadline - time.monotonic())))
            silent_s *= 2
        return bool(socket.poll(max(0, int(left_s * 1000))))

    def _see_server(self, timeout_s: float) -> None:
        """Raise ``STLConnectionError`` when nobody listens any more; a slow network says nothing."""
        try:
            self._connect_plain(timeout_s)
        except ConnectionRefusedError as error:
            raise NoServerError(
                f"nothing listens at {self.address} any more: see why the server ended, and start it again"
            ) from error
        except OSError:
            return

    def _connect_plain(self, timeout_s: float) -> None:
        """Make a TCP connection and close it. Raises ``OSError`` when that fails."""
        tcp.create_connection((self._host, self._rpc_port), timeout=timeout_s).close()

    def _admitted_socket(self, deadline: float) -> zmq.Socket[bytes]:
        """A REQ socket that the server has let in, unless that took longer; refusals raise."""
        socket = self._fresh_socket(zmq.REQ, None)
        events = zmq.EVENT_HANDSHAKE_SUCCEEDED | _HANDSHAKE_FAILED
        monitor = self._opened().keep(socket.get_monitor_socket(events))
        socket.connect(self.address)
        try:
            event = recv_monitor_message(monitor)["event"] if self._poll(monitor, deadline) else None
        except BaseException:
            monitor.close(linger=0)
            socket.close(linger=0)
            raise
        socket.disable_monitor()
        monitor.close(linger=0)
        if event in (None, zmq.EVENT_HANDSHAKE_SUCCEEDED):
            return socket
        socket.close(linger=0)
        raise STLConnectionError(f"the server at {self.address} refused to talk: {self._refusal(event)}")

    def _refusal(self, event: int) -> str:
        if self._credentials is None:
            return (
                f"if it asks for a token, let {ENVIRONMENT} name a file with a line NAME:TOKEN; else see "
                "whether a server of Allosaur or TRex listens there"
            )
        if event != zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            return f"it takes no tokens: leave {ENVIRONMENT} and rpc_auth out"
        return (
            f"it has no such name and token ('{self._credentials.name}'), or refused too many from here "
            "in the last minute: see the file of its --rpc-auth"
        )

    def _opened(self) -> _Sockets:
        if self._sockets is None:
            raise STLConnectionError(f"not connected to {self.address}: call connect() first")
        return self._sockets

    def _fresh_socket(self, kind: int, address: str | None) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = self._opened().new(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_INTERVAL_MS)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, _HEARTBEAT_TIMEOUT_MS)
        socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, _RECONNECT_MS_MAX)
        if self._credentials is not None:
            socket.setsockopt_string(zmq.PLAIN_USERNAME, self._credentials.name)
            socket.setsockopt_string(zmq.PLAIN_PASSWORD, self._credentials.token)
        if address is not None:
            socket.connect(address)
        return socket


class _Sockets:
    """A ZeroMQ context and all its sockets, which must be closed before it."""

    def __init__(self) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self._all: list[zmq.Socket[bytes]] = []

    def new(self, kind: int) -> zmq.Socket[bytes]:
        """A socket of this kind."""
        return self.keep(self._context.socket(kind))

    def keep(self, socket: zmq.Socket[bytes]) -> zmq.Socket[bytes]:
        """Have a socket of this context closed with the others."""
        self._all = [socket, *(one for one in self._all if not one.closed)]
        return socket

    def close(self) -> None:
        """Close all. May be called twice."""
        for socket in self._all:
            socket.close(linger=0)
        self._context.destroy(linger=0)


class _ZmqSubscription:
    """A SUB socket, its monitor (which tells of a lost connection), and a way to wake it."""

    def __init__(self, sockets: _Sockets, socket: zmq.Socket[bytes], address: str) -> None:
        self._socket = socket
        self._monitor = sockets.keep(socket.get_monitor_socket(zmq.EVENT_DISCONNECTED))
        self._alarm = sockets.new(zmq.PAIR)
        self._alarm.bind(f"inproc://wake-{id(self)}")
        self._waker = sockets.new(zmq.PAIR)
        self._waker.connect(f"inproc://wake-{id(self)}")
        self._poller = zmq.Poller()
        for source in (self._socket, self._monitor, self._alarm):
            self._poller.register(source, zmq.POLLIN)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(address)

    def receive(self) -> Signal:
        """Wait for the next signal."""
        ready = dict(self._poller.poll())
        if self._alarm in ready:
            self._release()
            return Signal.CLOSED
        if self._monitor in ready:
            recv_monitor_message(self._monitor)
            return Signal.DISCONNECTED
        # Many frames may wait; they are one notification.
        with contextlib.suppress(zmq.Again):
            while True:
                self._socket.recv(zmq.NOBLOCK)
        return Signal.FRAME

    def close(self) -> None:
        """Wake the receiver, which then closes the sockets in its own thread."""
        with contextlib.suppress(zmq.ZMQError):
            self._waker.send(b"", zmq.NOBLOCK)
        self._waker.close(linger=100)

    def _release(self) -> None:
        self._socket.disable_monitor()
        for socket in (self._monitor, self._alarm, self._socket):
            socket.close(linger=0)
