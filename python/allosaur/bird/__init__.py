"""The routing daemon BIRD of a server: a client of it, and configurations for it."""

from ._client import SYNC_TIMEOUT, ConfigurationException, ConnectionException, PyBirdClient
from ._config import DEFAULT_CFG, BirdCFGCreator, ExtRoute, Route

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
