"""``trex_stl_lib.services.trex_stl_service_ipv6nd`` of existing scripts."""

from allosaur import STLServiceIPv6ND

__all__ = ["STLServiceIPv6ND"]
