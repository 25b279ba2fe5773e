"""``trex.common.services.trex_service`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.services._service import STLService as Service
from allosaur.services._service import STLServiceFilter as ServiceFilter

__all__ = ["Service", "ServiceFilter"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
