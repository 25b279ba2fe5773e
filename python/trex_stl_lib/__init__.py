"""The import name ``trex_stl_lib`` of existing scripts: everything comes from ``allosaur``."""

from allosaur._from_api import from_api
from allosaur.compat._missing import install as _install

_install()


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
