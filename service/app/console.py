"""The part of the bootstrap for what a partner's developers look at in the console."""

from collections.abc import Mapping

from litestar import Router

from projections.activity.reader import ActivityReader
from projections.connect_links.reader import ConnectLinksReader
from service.app.bootstrap import Service
from service.facts.caller import Mode
from service.ledger.database import Database
from service.pages.console.caused import Timeline
from service.pages.console.checklist import checklist_router
from service.pages.console.claims import claims_router
from service.pages.console.frame import MemberOf
from service.pages.console.keys import KeyPages
from service.pages.console.links import links_router
from service.pages.console.requests import requests_router
from service.pages.console.sandbox import SandboxPages, sandbox_router
from service.pages.console.tutorial import tutorial_router
from service.pages.console.usage import usage_router
from service.partner_api.gate import API_PATH
from service.request_log.reader import RequestsReader
from service.sandbox.commands import SandboxCommands


def console(service: Service, member_of: MemberOf, key_pages: KeyPages) -> list[Router]:
    """Return the routers of requests, usage, lists, sandbox, checklist and tutorial."""
    modes, partner_list, settings = service.modes, service.partner_list, service.settings
    databases: Mapping[Mode, Database] = {
        mode: parts.ledger.database for mode, parts in modes.items()
    }
    calls: Mapping[Mode, RequestsReader] = {
        mode: RequestsReader(one, service.clock) for mode, one in databases.items()
    }
    links: Mapping[Mode, ConnectLinksReader] = {
        mode: ConnectLinksReader(one) for mode, one in databases.items()
    }
    timelines: Mapping[Mode, Timeline] = {
        mode: ActivityReader(parts.ledger) for mode, parts in modes.items()
    }
    test = modes["test"]
    sandbox = SandboxPages(
        SandboxCommands(test.ledger, service.partners, service.sandbox),
        partner_list,
        test.connection_list,
        test.onboarding_list,
    )
    return [
        requests_router(member_of, calls, timelines, partner_list),
        usage_router(member_of, calls, settings.rate_limit_per_minute, service.clock),
        claims_router(member_of, {mode: parts.claim_list for mode, parts in modes.items()}),
        links_router(
            member_of,
            links,
            {mode: parts.onboarding_list for mode, parts in modes.items()},
        ),
        sandbox_router(sandbox, member_of),
        checklist_router(member_of, calls["test"], partner_list, service.accounts),
        tutorial_router(member_of, key_pages, f"{settings.public_url}{API_PATH}"),
    ]
