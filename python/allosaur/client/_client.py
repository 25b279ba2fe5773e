"""The client: one class with every method, for scripts.

    with STLClient(server="127.0.0.1") as client:
        client.reset(ports=[0, 1])
        client.add_streams(stream, ports=[0])
        client.start(ports=[0], mult="5mpps", duration=10)
        client.wait_on_traffic(ports=[0])
        print(client.get_stats()[1]["ipackets"])

Its methods are in the other modules of this package, by subject; the handshake and the state that events
keep are in ``_session``.
"""

from __future__ import annotations

from ._changes import ChangeMethods
from ._line import LineMethods
from ._pcap import PcapMethods


class STLClient(LineMethods, PcapMethods):
    """A connection to a server, to own its ports and send traffic.

    ``username`` is who owns the ports (default: the user of this process). ``server`` is a host
    name or address, ``sync_port`` its RPC port, ``async_port`` its publishing port.
    ``verbose_level`` (none, critical, error, warning, info, debug) is how much goes to ``logger``,
    a ``logging.Logger``. ``sync_timeout`` is how long to wait for one answer in seconds (3),
    ``async_timeout`` for a long task of the server (30). ``transport`` replaces the network, for
    tests: see ``allosaur.testing``.

    A method raises ``STLError`` with a message that says what to do; ``STLConnectionError`` when
    the server cannot be reached, ``STLRpcError`` when it refuses. Methods may be called from one
    thread at a time.
    """

    #: Names that scripts for both kinds of traffic use.
    start_stl = ChangeMethods.start
    stop_stl = ChangeMethods.stop
    update_stl = ChangeMethods.update

    def __enter__(self) -> STLClient:
        self.connect()
        return self
