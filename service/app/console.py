"""The part of the bootstrap that puts the developer console together."""

from collections.abc import Mapping

from litestar import Router

from projections.activity.reader import ActivityReader
from projections.connect_links.reader import ConnectLinksReader
from service.app.bootstrap import Service
from service.facts.caller import Mode
from service.pages.console.apply import apply_router
from service.pages.console.checklist import checklist_router
from service.pages.console.keys import KeyPages, keys_router
from service.pages.console.lists import lists_router
from service.pages.console.members import members_router
from service.pages.console.requests import requests_router
from service.pages.console.sandbox import sandbox_router
from service.pages.console.settings import settings_router
from service.pages.console.tutorial import tutorial_router
from service.pages.console.usage import usage_router
from service.partner_api.gate import API_PATH
from service.request_log.reader import RequestsReader
from service.sandbox.commands import SandboxCommands


def console(service: Service) -> list[Router]:
    """Return the routers of the console, in the order of its navigation."""
    partners, partner_list, test = service.partners, service.partner_list, service.modes["test"]
    modes = service.modes.items()
    calls: Mapping[Mode, RequestsReader] = {
        mode: RequestsReader(one.ledger.database, service.clock) for mode, one in modes
    }
    keys = KeyPages(partners, partner_list, service.secrets, service.sandbox, service.clock)
    sandbox = SandboxCommands(test.ledger, partners, service.sandbox)
    return [
        apply_router(partners, partner_list),
        requests_router(
            calls, {mode: ActivityReader(one.ledger) for mode, one in modes}, partner_list
        ),
        usage_router(calls, service.settings.rate_limit_per_minute, service.clock),
        lists_router(
            {mode: one.claim_list for mode, one in modes},
            {mode: ConnectLinksReader(one.ledger.database) for mode, one in modes},
            {mode: one.onboarding_list for mode, one in modes},
        ),
        sandbox_router(sandbox, partner_list, test.connection_list, test.onboarding_list),
        tutorial_router(keys, f"{service.settings.public_url}{API_PATH}"),
        checklist_router(calls["test"], partner_list, service.accounts),
        keys_router(keys),
        settings_router(partners),
        members_router(partners, partner_list),
    ]
