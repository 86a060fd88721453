"""Every endpoint of the partner API."""

from collections.abc import Mapping

from litestar.handlers import HTTPRouteHandler

from projections.claim_list.reader import ClaimListReader
from service.claims.commands import ClaimCommands
from service.connections.commands import ConnectionCommands
from service.documents.commands import DocumentCommands
from service.facts.caller import Mode
from service.onboardings.commands import OnboardingCommands
from service.partner_api.claims import claim_handlers
from service.partner_api.connections import connection_handlers
from service.partner_api.documents import document_handlers
from service.partner_api.onboardings import onboarding_handlers


def partner_handlers(
    *,
    onboardings: Mapping[Mode, OnboardingCommands],
    connections: Mapping[Mode, ConnectionCommands],
    documents: Mapping[Mode, DocumentCommands],
    claims: Mapping[Mode, ClaimCommands],
    claim_list: Mapping[Mode, ClaimListReader],
) -> list[HTTPRouteHandler]:
    """Return the handlers in the order of the documentation; each part by its mode."""
    return [
        *onboarding_handlers(onboardings),
        *connection_handlers(connections),
        *document_handlers(documents),
        *claim_handlers(claims, claim_list),
    ]
