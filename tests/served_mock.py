"""A mock server on the network: for clients that are in other processes."""

from __future__ import annotations

import threading
from typing import Any

import zmq
from allosaur.rpc._transport import Signal
from allosaur.testing import MockTransport


class ServedMock:
    """A mock server on the network, for clients in other processes, for as long as a ``with`` block lasts."""

    host = "127.0.0.1"

    def __init__(self, mock: MockTransport) -> None:
        self.mock = mock
        self._context: zmq.Context[Any] = zmq.Context()
        self._requests = self._context.socket(zmq.REP)
        self._publisher = self._context.socket(zmq.PUB)
        self.rpc_port = self._requests.bind_to_random_port(f"tcp://{self.host}")
        self.pub_port = self._publisher.bind_to_random_port(f"tcp://{self.host}")
        self._stopped = threading.Event()
        self._subscription = mock.subscribe()
        self._threads = [threading.Thread(target=self._answer), threading.Thread(target=self._publish)]

    def __enter__(self) -> ServedMock:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stopped.set()
        self._subscription.close()
        for thread in self._threads:
            thread.join()
        self._context.destroy(linger=0)

    def _answer(self) -> None:
        while not self._stopped.is_set():
            if self._requests.poll(50):
                self._requests.send(self.mock.request(self._requests.recv(), 1.0))

    def _publish(self) -> None:
        while self._subscription.receive() is not Signal.CLOSED:
            self._publisher.send(b"{}")
