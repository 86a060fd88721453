"""Every endpoint of the partner API."""

from litestar.handlers import HTTPRouteHandler

from service.partner_api.claims import claim_handlers
from service.partner_api.connections import connection_handlers
from service.partner_api.documents import document_handlers
from service.partner_api.endpoints import Modes
from service.partner_api.events import event_handlers
from service.partner_api.onboardings import onboarding_handlers


def partner_handlers(modes: Modes, public_url: str = "") -> list[HTTPRouteHandler]:
    """Return the handlers in the order of the documentation; events name `public_url`."""
    return [
        *onboarding_handlers(modes),
        *connection_handlers(modes),
        *document_handlers(modes),
        *claim_handlers(modes),
        *event_handlers(modes, public_url),
    ]
