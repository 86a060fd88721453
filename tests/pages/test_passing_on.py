"""How customers pass their entity's id on, and where partners have them return to."""

import html
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from service.pages.customer.passing_on import ways
from tests.pages.visitor import Visitor, local
from tests.world import STAFF

DEVELOPER, CUSTOMER = "developer@example.com", "customer@example.com"
BACK = "https://www.example.com/back?tenant=7"


async def links_of(visitor, path):
    """Return the links of a page that lead elsewhere, by their scheme, and where each begins."""
    page = (await visitor.get(path)).text
    found = {}
    for match in re.finditer(r'<a class="[^"]*" href="((mailto|https):[^"]*)"', page):
        found[match[2]] = (html.unescape(match[1]), page[: match.start()])
    return page, found


async def save(developer, settings, **fields):
    """Open the settings, and save them with these."""
    return await developer.post(settings, version=await developer.version(settings), **fields)


async def test_a_customer_takes_the_id_to_the_partners_registered_page(world):
    """By their click, with words before it; the partner sets the address in the console."""
    partner = await world.partner()
    await world.service.partners.add_member(partner.partner_id, DEVELOPER, STAFF)
    developer = await Visitor(world).sign_in(DEVELOPER)
    live = world.service.modes["live"]
    entity_id = await live.entities.add("Bakery & Söhne", CUSTOMER, None, STAFF)
    customer = await Visitor(world).sign_in(CUSTOMER)
    asked = await partner.call("POST", "/connect-requests", json={"partner_user_id": "u"})
    path = local(asked.json()["connect_url"])
    approved = await customer.post(path, answer="approve", entity_id=entity_id)
    connected = approved.headers["location"]

    page, links = await links_of(customer, connected)
    assert f'data-copy="{entity_id}"' in page
    assert set(links) == {"mailto"}
    mail = urlsplit(links["mailto"][0])
    said = parse_qs(mail.query, strict_parsing=True)
    (row,) = await world.service.partner_list.partners(partner.partner_id)
    assert mail.path == row["email"]
    assert said["subject"] == ["Entity ID of Bakery & Söhne"]
    assert entity_id in said["body"][0].split("\r\n")

    settings = f"/console/{partner.partner_id}/settings"
    refused = await save(developer, settings, return_url="http://www.example.com/back")
    assert refused.status_code == 400
    assert 'aria-invalid="true"' in refused.text
    assert 'value="http://www.example.com/back"' in refused.text
    saved = await save(developer, settings, return_url=BACK, return_link="on")
    assert saved.status_code == 303
    assert f'value="{BACK}"' in (await developer.get(settings)).text

    page, links = await links_of(customer, connected)
    url, before = links["https"]
    assert url == f"{BACK}&entity_id={entity_id}"
    assert "<strong>www.example.com</strong>" in before
    assert "tells it the entity ID" in before
    assert 'rel="noreferrer"' in page

    await save(developer, settings)  # of a page that was opened before there was the field
    assert f'value="{BACK}"' in (await developer.get(settings)).text
    await save(developer, settings, return_url="")
    _, links = await links_of(customer, connected)
    assert set(links) == {"mailto"}


async def test_whoever_finishes_an_onboarding_has_the_same_ways(world):
    """For the hour in which the link shows the id."""
    partner = await world.partner()
    await world.service.partners.change_settings(
        partner.partner_id, STAFF, return_url=BACK, return_link=True
    )
    body = {"partner_user_id": "u", "company_name": "New", "user_email": "new@example.com"}
    answer = (await partner.call("POST", "/onboardings", json=body)).json()
    path = local(answer["magic_link_url"])
    visitor = await Visitor(world).sign_in("new@example.com")
    done = await visitor.post(path, company_name="New")
    live = world.service.modes["live"].onboarding_list
    entity_id = (await live.by_id(answer["onboarding_id"]))["entity_id"]

    _, links = await links_of(visitor, done.headers["location"])
    assert links["https"][0] == f"{BACK}&entity_id={entity_id}"
    assert entity_id in parse_qs(urlsplit(links["mailto"][0]).query)["body"][0]


async def test_a_changed_return_url_asks_for_a_fresh_proof(world, monkeypatch):
    """A stolen session leads no customer elsewhere; the other settings need none."""
    partner = await world.partner()
    await world.service.partners.add_member(partner.partner_id, DEVELOPER, STAFF)
    await world.service.partners.change_settings(partner.partner_id, STAFF, return_url=BACK)
    developer = await Visitor(world).sign_in(DEVELOPER)
    monkeypatch.setattr("service.people.sessions.FRESH", timedelta())  # as if it was long ago
    settings = f"/console/{partner.partner_id}/settings"
    for url in ("https://example.net/back", ""):
        asked = await save(developer, settings, return_url=url, return_link="on")
        assert asked.headers["location"] == f"/proof?next={settings}"
    saved = await save(developer, settings, return_url=BACK, return_link="on")
    assert saved.headers["location"] == f"{settings}?saved"
    known = await world.service.partners.look(partner.partner_id)
    assert (known.return_url, known.return_link) == (BACK, True)


async def test_customers_return_to_the_website_that_the_team_verified(world):
    """Or below it; a page elsewhere that was set before is not offered, nor any once revoked."""
    partners = world.service.partners
    partner_id = await partners.add("Books", "books@example.com", STAFF)
    await partners.add_member(partner_id, DEVELOPER, STAFF)
    developer = await Visitor(world).sign_in(DEVELOPER)
    settings = f"/console/{partner_id}/settings"

    async def offered():
        return ways("ent_1", "Bakery", await partners.profile(partner_id)).host

    elsewhere = "https://example.net/back"
    assert (await save(developer, settings, return_url=elsewhere)).status_code == 303
    assert await offered() is None
    await partners.approve(partner_id, STAFF, "Example.com")
    assert await offered() is None
    for url in (*("https://example.org/", "https://anexample.com/"), "https://example.com.net/"):
        refused = await save(developer, settings, return_url=url)
        assert refused.status_code == 400, url
        assert "the website that our team verified" in refused.text
    same = await save(developer, settings, return_url=elsewhere, return_link="on")
    assert same.status_code == 303  # nothing about it has changed
    for host in ("example.com", "app.example.com"):
        assert (await save(developer, settings, return_url=f"https://{host}/")).status_code == 303
        assert await offered() == host
    for website, host in (("example.net", None), (None, "app.example.com")):
        await partners.verify_website(partner_id, STAFF, website)
        assert await offered() == host
        told = "Customers see no button" in (await developer.get(settings)).text
        assert told is (host is None)
    await partners.revoke(partner_id, STAFF)
    assert await offered() is None


async def test_settings_that_a_colleague_changed_meanwhile_are_not_undone(world):
    """They are shown beside what was entered, which is saved when it is sent again."""
    partner = await world.partner()
    commands, partner_id = world.service.partners, partner.partner_id
    await commands.add_member(partner_id, DEVELOPER, STAFF)
    settings = f"/console/{partner_id}/settings"
    first, second = [await Visitor(world).sign_in(DEVELOPER) for _ in range(2)]
    earlier = await first.version(settings)
    assert (await save(second, settings, return_link="on", return_url="")).status_code == 303
    await commands.issue_key(partner_id, "test", STAFF)  # which changes no setting
    outdated = await first.post(settings, version=earlier, return_url=BACK)
    assert (outdated.status_code, 'role="alert"' in outdated.text) == (409, True)
    assert "A colleague changed these settings" in outdated.text
    assert f'value="{BACK}"' in outdated.text
    known = await commands.look(partner_id)
    assert (known.return_link, known.return_url) == (True, None)
    same = await first.post(settings, version=earlier, return_link="on", return_url="")
    assert same.status_code == 303
    assert (await save(first, settings, return_link="on", return_url=BACK)).status_code == 303
    assert (await commands.look(partner_id)).return_link


async def test_the_team_sees_where_customers_return_to_before_it_approves(world):
    """On the page of the applicant, with its other settings."""
    partners = world.service.partners
    partner_id = await partners.add("Books", "books@example.com", STAFF)
    await world.service.staff.add("team@example.com", STAFF)
    staff = await Visitor(world).sign_in("team@example.com")
    await partners.change_settings(partner_id, STAFF, return_url=BACK)
    assert html.escape(BACK) in (await staff.get(f"/backoffice/partners/{partner_id}")).text
