"""``trex.common.services.trex_service_int`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.services._context import ServiceContext as ServiceCtx
from allosaur.services._pipe import ServicePipe

__all__ = ["ServiceCtx", "ServicePipe"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
