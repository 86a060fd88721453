"""The part of the bootstrap that puts the back office together."""

from litestar import Router

from service.app.bootstrap import PartnerLedger, Service
from service.ledger.following.status import HeadWatch
from service.pages.backoffice.claims import claims_router
from service.pages.backoffice.connecting import disconnecting_router, handing_router
from service.pages.backoffice.entities import entities_router
from service.pages.backoffice.frame import BackofficeContext, ModeContext
from service.pages.backoffice.health import Watched, health_router
from service.pages.backoffice.partners import partners_router
from service.pages.backoffice.reader import AccountsLookUp, LedgerLookUp
from service.pages.backoffice.review import review_router
from service.pages.backoffice.search import search_router
from service.pages.backoffice.timeline import timeline_router


def backoffice(service: Service) -> list[Router]:
    """Return the routers of the team's pages."""
    desk = BackofficeContext(
        service.staff,
        AccountsLookUp(service.accounts.database),
        service.partners,
        service.partner_list,
        service.secrets,
        {mode: _side(ledger) for mode, ledger in service.modes.items()},
    )
    watched = [
        Watched(ledger, HeadWatch(ledger, service.clock), service.checkpoints(ledger.name))
        for ledger in service.ledgers
    ]
    return [
        search_router(desk, service.ledgers),
        partners_router(desk),
        review_router(desk),
        entities_router(desk),
        handing_router(desk),
        disconnecting_router(desk),
        claims_router(desk),
        timeline_router(desk, service.ledgers),
        health_router(desk, watched, service.read_models, service.clock),
    ]


def _side(ledger: PartnerLedger) -> ModeContext:
    return ModeContext(
        LedgerLookUp(ledger.ledger.database),
        ledger.connections,
        ledger.connection_list,
        ledger.claims,
        ledger.claim_list,
    )
