"""``trex.common.trex_types`` of existing scripts."""

from allosaur._places import ALL_PROFILES as ALL_PROFILE_ID
from allosaur._places import DEFAULT_PROFILE as DEFAULT_PROFILE_ID
from allosaur._places import PortProfileID

__all__ = ["ALL_PROFILE_ID", "DEFAULT_PROFILE_ID", "PortProfileID"]
