"""``trex.pybird.bird_cfg_creator`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.bird import DEFAULT_CFG, BirdCFGCreator, ExtRoute, Route

__all__ = ["DEFAULT_CFG", "BirdCFGCreator", "ExtRoute", "Route"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
