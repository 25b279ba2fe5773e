"""``trex.pybird.pybird_zmq_client`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.bird import (
    DEFAULT_CFG,
    SYNC_TIMEOUT,
    BirdCFGCreator,
    ConfigurationException,
    ConnectionException,
    ExtRoute,
    PyBirdClient,
    Route,
)

__all__ = [
    "DEFAULT_CFG",
    "SYNC_TIMEOUT",
    "BirdCFGCreator",
    "ConfigurationException",
    "ConnectionException",
    "ExtRoute",
    "PyBirdClient",
    "Route",
]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
