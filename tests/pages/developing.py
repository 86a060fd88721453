"""What a partner's people do before a console test begins."""

from typing import Any

from playwright.sync_api import Page

from service.app.bootstrap import Service
from tests.pages.site import Site
from tests.world import STAFF


def apply(site: Site, page: Page, email: str, company: str = "Ledger Books") -> str:
    """Sign a person in and apply; return the partner's id."""
    site.sign_in(page, email, "/console")
    page.get_by_label("Company", exact=True).fill(company)
    page.get_by_label("Your name").fill("Dev Eloper")
    page.get_by_label("Website").fill("www.example.com")
    page.get_by_label("What will you use the API for?").fill("To refer our customers.")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("/console/ptn_*")
    return page.url.rpartition("/")[2]


def approved(site: Site, email: str) -> str:
    """Return the id of a partner that this person has applied for, without a browser."""

    async def act(service: Service) -> str:
        partner_id = await service.partners.apply(
            company="Ledger Books",
            contact_name="Dev Eloper",
            use="To refer our customers.",
            email=email,
            website="www.example.com",
            cause=STAFF,
        )
        await service.partners.approve(partner_id, STAFF)
        return partner_id

    return site.do(act)


def developer(site: Site, **options: Any) -> tuple[Page, str]:
    """Return the page of a member who is signed in, and the id of their approved partner."""
    page, email = site.visitor(**options), site.mailbox()
    partner_id = approved(site, email)
    site.sign_in(page, email)
    return page, partner_id


def issued(site: Site, partner_id: str) -> str:
    """Return the token of a new live key, issued without a browser."""
    return site.do(lambda service: service.partners.issue_key(partner_id, "live", STAFF)).token


def issue(page: Page, partner_id: str, mode: str) -> str:
    """Issue a key; return its token."""
    page.goto(f"/console/{partner_id}/keys")
    page.get_by_label(f"{mode.capitalize()}:").check()
    page.get_by_role("button", name="Issue a key").click()
    return page.locator(".copyable code").inner_text()
