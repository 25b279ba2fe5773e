"""The import name ``trex.pybird`` of existing scripts: everything comes from ``allosaur.bird``."""

from allosaur._from_api import from_api


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
