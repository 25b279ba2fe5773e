"""``trex.astf.topo`` of existing scripts."""

from allosaur._stateful._topology import ASTFTopology, TopoGW, TopoVIF

__all__ = ["ASTFTopology", "TopoGW", "TopoVIF"]
