"""The part of the bootstrap that puts the pages together."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from litestar import Router

from projections.activity.reader import ActivityReader
from projections.claim_list.partners_claims import PartnersClaims
from projections.connect_links.reader import ConnectLinksReader
from service.app.bootstrap import Service
from service.claims.overview import ClaimOverviews
from service.facts.caller import Mode
from service.http.rate_limit.limiter import RateLimiter
from service.http.router import OneOffRouter
from service.http.tracebacks import answered
from service.ledger.following.status import HeadWatch
from service.pages.backoffice.claims import claims_router
from service.pages.backoffice.entities import connecting_router, entities_router
from service.pages.backoffice.frame import (
    BACKOFFICE,
    BackofficeContext,
    IdUnknown,
    ModeContext,
    backoffice_frame,
    on_id_unknown,
)
from service.pages.backoffice.health import Watched, health_router
from service.pages.backoffice.mails import mails_router
from service.pages.backoffice.partners import partners_router
from service.pages.backoffice.people import people_router
from service.pages.backoffice.review import review_router
from service.pages.backoffice.search import search_router
from service.pages.backoffice.timeline import timeline_router
from service.pages.console.apply import apply_router
from service.pages.console.checklist import Checklists, checklist_router
from service.pages.console.claims import claims_router as partners_claims_router
from service.pages.console.csv_file import CsvFiles
from service.pages.console.frame import console_frame
from service.pages.console.keys import KeyPages, keys_router
from service.pages.console.links import links_router
from service.pages.console.members import members_router
from service.pages.console.onboardings import onboardings_router
from service.pages.console.overview import OverviewPage, overview_router
from service.pages.console.reference import reference_router
from service.pages.console.requests import requests_router
from service.pages.console.sandbox import sandbox_router
from service.pages.console.settings import settings_router
from service.pages.console.tutorial import tutorial_router
from service.pages.console.usage import usage_router
from service.pages.console.webhooks import WebhookPages, webhooks_router
from service.pages.customer.account import account_router
from service.pages.customer.claims import customer_claims_router
from service.pages.customer.connect import connect_router
from service.pages.customer.onboarding import onboarding_router
from service.pages.gate import page_guard
from service.pages.home import Landings, backoffice_home_router, home_router
from service.pages.proof import Proofs, proof_router
from service.pages.router import pages_routers
from service.pages.security import security_router
from service.pages.sign_in import HomeOf, sign_in_router
from service.pages.unrouted import Unrouted
from service.pages.visit import Visits
from service.partner_api.gate import API_PATH
from service.people.ceremonies import Ceremonies
from service.people.sessions import Person
from service.request_log.reader import RequestsReader
from service.sandbox.commands import SandboxCommands


def pages(service: Service, limiter: RateLimiter) -> list[Router]:
    """Return the routers of all pages at the public URL."""
    live = service.modes["live"]

    settings = service.settings
    proofs = _proofs(service, settings.public_url)
    has_backoffice = settings.backoffice_url is None
    landings = Landings(service.accounts.database, has_backoffice)
    return _pages_at(
        settings.public_url,
        service,
        limiter,
        proofs,
        [
            home_router(landings),
            _sign_in(service, limiter, landings.home, settings.public_url),
            proof_router(proofs),
            security_router(proofs),
            connect_router(live.connections, live.connection_list, service.partners.profile),
            onboarding_router(live.onboardings, live.connection_list, service.partners.profile),
            account_router(
                live.connections,
                live.connection_list,
                live.entities,
                service.partners.name,
                service.partner_list.is_approved,
                service.partners.profile,
                proofs,
            ),
            customer_claims_router(
                live.connection_list,
                live.claim_list,
                ClaimOverviews(live.ledger),
                service.partners.name,
                service.partner_list.is_approved,
            ),
            OneOffRouter(
                "/", route_handlers=_console(service, proofs), opt={"frame": console_frame}
            ),
            *([_backoffice(service, proofs)] if has_backoffice else []),
        ],
    )


def backoffice_pages(service: Service, limiter: RateLimiter, origin: str) -> list[Router]:
    """Return the routers of the back office's pages at an origin of its own."""
    proofs = _proofs(service, origin)

    async def home_of(_person: Person) -> str:
        return BACKOFFICE

    routers = [
        backoffice_home_router(),
        _sign_in(service, limiter, home_of, origin),
        proof_router(proofs),
        security_router(proofs),
        _backoffice(service, proofs),
    ]
    return _pages_at(origin, service, limiter, proofs, routers)


def unrouted(
    service: Service,
    origin: str,
    *,
    has_backoffice_alone: bool = False,
    no_such_path: str | None = None,
) -> Unrouted:
    """Return what handles the addresses of an origin that nothing has."""
    has_backoffice = service.settings.backoffice_url is None
    landings = Landings(service.accounts.database, has_backoffice)
    visits = Visits(service.sessions, service.secrets, origin)
    return Unrouted(visits, None if has_backoffice_alone else landings, no_such_path)


def _pages_at(
    origin: str,
    service: Service,
    limiter: RateLimiter,
    proofs: Proofs,
    routers: Sequence[Router],
) -> list[Router]:
    return pages_routers(
        Visits(service.sessions, service.secrets, origin),
        page_guard(
            *(service.partner_list, service.partners, service.staff, limiter),
            staff_by_passkey=proofs.ceremonies.are_possible,
        ),
        routers,
    )


def _proofs(service: Service, origin: str) -> Proofs:
    """Return the proofs at an origin, by passkeys that hold for all origins of ours."""
    host = urlsplit(service.settings.public_url).hostname or ""
    ceremonies = Ceremonies(service.secrets, service.clock, origin, host)
    return Proofs(service.passkeys, ceremonies, service.sessions)


def _sign_in(service: Service, limiter: RateLimiter, home_of: HomeOf, origin: str) -> Router:
    return sign_in_router(
        service.sign_in, service.marks, service.sessions, limiter, home_of, origin
    )


def _console(service: Service, proofs: Proofs) -> list[Router]:
    """Return the routers of the console, in the order of its navigation: group by group."""
    partners, partner_list, test = service.partners, service.partner_list, service.modes["test"]
    modes = service.modes.items()
    calls: Mapping[Mode, RequestsReader] = {
        mode: RequestsReader(one.ledger.database, service.clock) for mode, one in modes
    }
    keys = KeyPages(partners, partner_list, service.secrets, service.sandbox, service.clock, proofs)
    checklists = Checklists(calls["test"], service.accounts)
    claims: Mapping[Mode, PartnersClaims] = {
        mode: PartnersClaims(one.ledger.database) for mode, one in modes
    }
    cases: Mapping[Mode, ClaimOverviews] = {mode: ClaimOverviews(one.ledger) for mode, one in modes}
    sandbox, files = SandboxCommands(test.ledger, partners, service.sandbox), CsvFiles()
    return [
        apply_router(partners, partner_list),
        overview_router(
            OverviewPage(
                partners,
                claims,
                calls,
                checklists,
                service.settings.rate_limit_per_minute,
                service.clock,
            )
        ),
        tutorial_router(keys, checklists, f"{service.settings.public_url}{API_PATH}"),
        sandbox_router(sandbox, partner_list, test.connection_list, test.onboarding_list),
        checklist_router(checklists),
        partners_claims_router(claims, cases, files),
        links_router(
            {mode: ConnectLinksReader(one.ledger.database) for mode, one in modes},
            {mode: one.ledger for mode, one in modes},
            files,
        ),
        onboardings_router({mode: one.onboarding_list for mode, one in modes}, files),
        requests_router(
            calls, {mode: ActivityReader(one.ledger) for mode, one in modes}, partner_list
        ),
        usage_router(calls, service.settings.rate_limit_per_minute, service.clock),
        webhooks_router(
            WebhookPages(
                *(service.endpoints, service.endpoint_list, service.webhook_queues),
                *(service.secrets, proofs),
            )
        ),
        keys_router(keys),
        reference_router(keys),
        settings_router(partners, proofs),
        members_router(partners, partner_list, proofs),
    ]


def _backoffice(service: Service, proofs: Proofs) -> Router:
    """Return the router of the team's pages."""
    context = BackofficeContext(
        service.staff,
        service.accounts.database,
        service.partners,
        service.reviews,
        service.partner_list,
        service.secrets,
        {
            mode: ModeContext(
                parts.ledger.database,
                parts.connections,
                parts.connection_list,
                parts.claims,
                parts.claim_list,
                parts.claim_documents,
            )
            for mode, parts in service.modes.items()
        },
    )
    watched = [
        Watched(ledger, HeadWatch(ledger, service.clock), service.checkpoints(ledger.name))
        for ledger in service.ledgers
    ]
    return OneOffRouter(
        BACKOFFICE,
        route_handlers=[  # in the order of the navigation
            search_router(context, service.ledgers),
            partners_router(context, proofs),
            review_router(context, proofs),
            entities_router(context, proofs),
            connecting_router(context, proofs),
            claims_router(context),
            people_router(context, proofs),
            mails_router(),
            timeline_router(service.ledgers),
            health_router(watched, service.read_models, service.clock),
        ],
        exception_handlers=answered({IdUnknown: on_id_unknown}),
        opt={"frame": backoffice_frame},
    )
