"""Every endpoint of the partner API."""

from collections.abc import Mapping
from typing import Protocol

from litestar.handlers import HTTPRouteHandler

from service.facts.caller import Mode
from service.partner_api.claims import ClaimParts, claim_handlers
from service.partner_api.connections import ConnectionParts, connection_handlers
from service.partner_api.documents import DocumentParts, document_handlers
from service.partner_api.onboardings import OnboardingParts, onboarding_handlers


class PartnerParts(OnboardingParts, ConnectionParts, DocumentParts, ClaimParts, Protocol):
    """What all endpoints need of a mode's ledger."""


def partner_handlers(modes: Mapping[Mode, PartnerParts]) -> list[HTTPRouteHandler]:
    """Return the handlers in the order of the documentation."""
    return [
        *onboarding_handlers(modes),
        *connection_handlers(modes),
        *document_handlers(modes),
        *claim_handlers(modes),
    ]
