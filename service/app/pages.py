"""The part of the bootstrap that puts the pages together."""

from litestar import Router

from service.app.backoffice import backoffice
from service.app.bootstrap import Service
from service.app.console import console
from service.http.rate_limit.limiter import RateLimiter
from service.ledger.events import ERASED
from service.pages.customer.account import account_router
from service.pages.customer.connect import connect_router
from service.pages.customer.onboarding import onboarding_router
from service.pages.gate import page_guard
from service.pages.home import home_router
from service.pages.router import pages_routers
from service.pages.sign_in import sign_in_router
from service.pages.visit import Visits


def pages(service: Service, limiter: RateLimiter) -> list[Router]:
    """Return the routers of all pages."""
    live = service.modes["live"]
    accounts = service.accounts.database

    async def partner_name(partner_id: str) -> str:
        rows = await service.partner_list.partners(partner_id)
        return rows[0]["name"] if rows else ERASED

    return pages_routers(
        Visits(service.sessions, service.secrets, service.settings.public_url),
        page_guard(service.partner_list, service.staff),
        [
            home_router(accounts),
            sign_in_router(service.sign_in, service.sessions, limiter, accounts),
            connect_router(live.connections, live.connection_list),
            onboarding_router(live.onboardings, live.connection_list),
            account_router(
                live.connections,
                live.connection_list,
                live.claim_list,
                partner_name,
                service.sessions,
            ),
            *console(service),
            backoffice(service),
        ],
    )
