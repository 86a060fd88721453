"""The part of the bootstrap that puts the back office together."""

from litestar import Router

from service.app.bootstrap import Service
from service.ledger.following.status import HeadWatch
from service.pages.backoffice.claims import claims_router
from service.pages.backoffice.connecting import disconnecting_router, handing_router
from service.pages.backoffice.entities import entities_router
from service.pages.backoffice.frame import (
    BACKOFFICE,
    BackofficeContext,
    IdUnknown,
    ModeContext,
    on_id_unknown,
)
from service.pages.backoffice.health import Watched, health_router
from service.pages.backoffice.partners import partners_router
from service.pages.backoffice.search import search_router
from service.pages.backoffice.timeline import timeline_router


def backoffice(service: Service) -> Router:
    """Return the router of the team's pages."""
    context = BackofficeContext(
        service.staff,
        service.accounts.database,
        service.partners,
        service.partner_list,
        service.secrets,
        {
            mode: ModeContext(
                parts.ledger.database,
                parts.connections,
                parts.connection_list,
                parts.claims,
                parts.claim_list,
            )
            for mode, parts in service.modes.items()
        },
    )
    watched = [
        Watched(ledger, HeadWatch(ledger, service.clock), service.checkpoints(ledger.name))
        for ledger in service.ledgers
    ]
    return Router(
        BACKOFFICE,
        route_handlers=[  # in the order of the navigation
            search_router(context, service.ledgers),
            partners_router(context),
            entities_router(context),
            handing_router(context),
            disconnecting_router(context),
            claims_router(context),
            timeline_router(service.ledgers),
            health_router(watched, service.read_models, service.clock),
        ],
        exception_handlers={IdUnknown: on_id_unknown},
    )
