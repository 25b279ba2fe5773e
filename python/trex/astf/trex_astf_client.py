"""``trex.astf.trex_astf_client`` of existing scripts."""

from allosaur import ASTFClient
from allosaur._from_api import from_api
from allosaur.stateful.client._tunnels import Tunnel

__all__ = ["ASTFClient", "Tunnel"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
