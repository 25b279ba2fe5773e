"""``trex.common.trex_types`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.client._places import ALL_PROFILES as ALL_PROFILE_ID
from allosaur.client._places import DEFAULT_PROFILE as DEFAULT_PROFILE_ID
from allosaur.client._places import PortProfileID

__all__ = ["ALL_PROFILE_ID", "DEFAULT_PROFILE_ID", "PortProfileID"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
