"""``trex.common.services.trex_service`` of existing scripts."""

from allosaur._services._service import STLService as Service
from allosaur._services._service import STLServiceFilter as ServiceFilter

__all__ = ["Service", "ServiceFilter"]
