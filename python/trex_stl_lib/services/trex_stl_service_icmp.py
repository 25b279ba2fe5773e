"""``trex_stl_lib.services.trex_stl_service_icmp`` of existing scripts."""

from allosaur import STLServiceICMP

__all__ = ["STLServiceICMP"]
