"""``trex.common.services.trex_service_int`` of existing scripts."""

from allosaur._services._context import ServiceContext as ServiceCtx
from allosaur._services._pipe import ServicePipe

__all__ = ["ServiceCtx", "ServicePipe"]
