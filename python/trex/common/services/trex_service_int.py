"""``trex.common.services.trex_service_int`` of existing scripts."""

from allosaur._compat_missing import from_api
from allosaur._services._context import ServiceContext as ServiceCtx
from allosaur._services._pipe import ServicePipe

__all__ = ["ServiceCtx", "ServicePipe"]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
