"""The import name ``trex.stl`` of existing scripts: everything comes from ``allosaur``."""

from allosaur.compat._missing import from_api


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
