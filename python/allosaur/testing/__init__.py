"""Test a script without a server: a transport that answers as a server would.

    transport = MockTransport()
    client = STLClient(transport=transport)
    client.connect()
    ...
    transport.finish(0)
    assert transport.methods()[-1] == "stop_traffic"

It keeps ownership, streams, states and events as a server does, and sends no traffic: counters
are what the test puts into ``port_stats``. Any method can be given another answer with ``answer``,
be refused with ``refuse``, and the connection can be broken. Frames that a test lets a port
``receive`` come out of its captures and its queue; those that the client pushes are in ``pushed``,
and go to ``on_push``. ``MockStatefulTransport`` is such a server for stateful traffic.
"""

from __future__ import annotations

from ._metrics import MockMetric
from ._stateful import MockStatefulTransport
from ._transport import Handler, MockTransport

__all__ = ["Handler", "MockMetric", "MockStatefulTransport", "MockTransport"]
