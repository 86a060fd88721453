"""The part of the bootstrap that puts the developer console together."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from litestar import Router

from projections.activity.reader import ActivityReader
from projections.connect_links.reader import ConnectLinksReader
from service.app.bootstrap import PartnerLedger, Service
from service.facts.caller import Mode
from service.pages.console.apply import apply_router
from service.pages.console.checklist import checklist_router
from service.pages.console.claims import claims_router
from service.pages.console.keys import KeyPages, keys_router
from service.pages.console.links import links_router
from service.pages.console.members import members_router
from service.pages.console.requests import requests_router
from service.pages.console.sandbox import sandbox_router
from service.pages.console.settings import settings_router
from service.pages.console.tutorial import tutorial_router
from service.pages.console.usage import usage_router
from service.partner_api.gate import API_PATH
from service.request_log.reader import RequestsReader
from service.sandbox.commands import SandboxCommands

T = TypeVar("T")


def console(service: Service) -> list[Router]:
    """Return the routers of the console, in the order of its navigation."""
    partners, partner_list, test = service.partners, service.partner_list, service.modes["test"]
    calls = _by_mode(service, lambda one: RequestsReader(one.ledger.database, service.clock))
    activity = _by_mode(service, lambda one: ActivityReader(one.ledger))
    links = _by_mode(service, lambda one: ConnectLinksReader(one.ledger.database))
    keys = KeyPages(partners, partner_list, service.secrets, service.sandbox, service.clock)
    sandbox = SandboxCommands(test.ledger, partners, service.sandbox)
    return [
        apply_router(partners, partner_list),
        requests_router(calls, activity, partner_list),
        usage_router(calls, service.settings.rate_limit_per_minute, service.clock),
        claims_router(_by_mode(service, lambda one: one.claim_list)),
        links_router(links, _by_mode(service, lambda one: one.onboarding_list)),
        sandbox_router(sandbox, partner_list, test.connection_list, test.onboarding_list),
        tutorial_router(keys, f"{service.settings.public_url}{API_PATH}"),
        checklist_router(calls["test"], partner_list, service.accounts),
        keys_router(keys),
        settings_router(partners),
        members_router(partners, partner_list),
    ]


def _by_mode(service: Service, part: Callable[[PartnerLedger], T]) -> Mapping[Mode, T]:
    return {mode: part(parts) for mode, parts in service.modes.items()}
