"""``trex_stl_lib.services.trex_stl_service_dhcp`` of existing scripts."""

from allosaur import STLServiceDHCP

__all__ = ["STLServiceDHCP"]
