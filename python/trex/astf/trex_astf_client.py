"""``trex.astf.trex_astf_client`` of existing scripts."""

from allosaur import ASTFClient
from allosaur._stateful._client_tunnels import Tunnel

__all__ = ["ASTFClient", "Tunnel"]
