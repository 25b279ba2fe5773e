"""``trex_stl_lib.services.trex_stl_service_arp`` of existing scripts."""

from allosaur import STLServiceARP

__all__ = ["STLServiceARP"]
