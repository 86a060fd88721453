"""What a partner's people do before a console test begins."""

from playwright.sync_api import Page

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


def approved(site: Site, page: Page, email: str | None = None) -> str:
    """Return the id of a partner whose member is signed in on the page."""
    partner_id = apply(site, page, email or site.mailbox())
    site.do(lambda service: service.partners.approve(partner_id, STAFF))
    return partner_id


def developer(site: Site) -> tuple[Page, str]:
    """Return the page of a member who is signed in, and the id of their approved partner."""
    page = site.visitor()
    return page, approved(site, page)


def issue(page: Page, partner_id: str, mode: str) -> str:
    """Issue a key; return its token."""
    page.goto(f"/console/{partner_id}/keys")
    page.get_by_label(f"{mode.capitalize()}:").check()
    page.get_by_role("button", name="Issue a key").click()
    return page.locator(".copyable code").inner_text()
