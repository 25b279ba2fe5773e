"""``trex_stl_lib.services.trex_stl_service`` of existing scripts."""

from allosaur import STLService, STLServiceFilter

__all__ = ["STLService", "STLServiceFilter"]
