"""Words for the modes of a server and the states of its ports, as all commands say them."""

from __future__ import annotations

STATELESS, STATEFUL = "STL", "ASTF"
"""The modes, by the names that the server has for them."""
MODES = {STATELESS: "stateless", STATEFUL: "stateful"}
PORT_STATES = {
    "IDLE": "idle",
    "STREAMS": "has streams",
    "TX": "sends",
    "PAUSE": "paused",
    "PCAP_TX": "sends a capture",
    "ASTF_PARSE": "starting",
    "ASTF_BUILD": "starting",
    "ASTF_CLEANUP": "closing flows",
}
