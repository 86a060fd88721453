"""What a customer sees of claims and of a partner that asks, and what it costs."""

import re

from service.archive.directory import DirectoryArchive
from service.pages.customer.claims import ROWS_SHOWN
from service.partners.commands import Profile
from service.privacy.erase import erase_claim
from service.privacy.erasure_list import ErasureList
from tests.pages.customers import EMAIL, business, link_of, refused
from tests.pages.markup import PAGE_BYTES_MAX
from tests.pages.visitor import Visitor
from tests.world import STAFF, Partner, World

NASTY = "\u202e" * 200


async def connected(world: World) -> tuple[Partner, str, Visitor]:
    """Return a partner, a business connected to it, and its owner."""
    partner = await world.partner()
    entity_id = await business(world)
    await partner.connect(entity_id)
    return partner, entity_id, await Visitor(world).sign_in(EMAIL)


async def test_claims_name_debtor_total_and_stage(world):
    """The list and the claim's page; another business's claim is not found there."""
    partner, entity_id, visitor = await connected(world)
    invoices = [
        {"number": "INV-7", "due_date": "2026-02-04", "total_amount_for_invoice": "1234.50"},
        {"total_amount_for_invoice": "1000.00"},
        {"number": "no amount"},
    ]
    body = {"defendant": {"name": "Debtor & Sons"}, "invoices": invoices}
    claim_id = (await partner.claim(entity_id, **body)).json()["claim_id"]
    live = world.service.modes["live"]
    await live.claims.move(claim_id, "letter_before_action", STAFF)
    path = f"/account/{entity_id}/{partner.partner_id}"
    listed = (await visitor.get(path)).text
    shown = (await visitor.get(f"{path}/claims/{claim_id}")).text
    for page in (listed, shown):
        assert "Debtor &amp; Sons" in page
        assert "2,234.50" in page
        assert "Letter before action" in page
    assert "4 February 2026" in shown
    assert re.findall(r"<li>(Moved to Letter before action|Created by)", shown) == [
        "Moved to Letter before action",
        "Created by",
    ]
    other = await business(world, "Other", another=True)
    await partner.connect(other)
    elsewhere = f"/account/{other}/{partner.partner_id}/claims/{claim_id}"
    refused(await visitor.get(elsewhere), 404, "claim_not_found")
    stranger = await Visitor(world).sign_in("stranger@example.com")
    refused(await stranger.get(f"{path}/claims/{claim_id}"), 404, "entity_not_found")


async def test_an_erased_claim_says_so(world, tmp_path):
    """Its stages stay; nothing of the debtor is shown, in the list either."""
    partner, entity_id, visitor = await connected(world)
    claim_id = (await partner.claim(entity_id)).json()["claim_id"]
    listed = ErasureList(DirectoryArchive(tmp_path), world.service.secrets.get)
    parts = world.service.privacy(listed)["live"]
    subject = await parts.subjects.claim(claim_id)
    assert subject is not None
    await erase_claim(parts, subject, "on request", STAFF)
    path = f"/account/{entity_id}/{partner.partner_id}"
    for page in (await visitor.get(path), await visitor.get(f"{path}/claims/{claim_id}")):
        assert "[erased]" in page.text
        assert "Debtor</" not in page.text.replace("Debtor</th>", "")
        assert "10.00" not in page.text
    assert "Personal data erased" in page.text


async def test_the_longest_claims_fit_into_a_page(world):
    """A thousand invoices, names of marks that nobody sees: neither page weighs too much."""
    partner, entity_id, visitor = await connected(world)
    invoices = [{"number": NASTY, "total_amount_for_invoice": "9" * 15 + ".99"}] * 1000
    for number in range(26):
        body = {
            "defendant": {"name": NASTY},
            "invoices": invoices if number == 25 else invoices[:1],
        }
        answer = await partner.claim(entity_id, f"{number}{NASTY}", **body)
    claim_id = answer.json()["claim_id"]
    path = f"/account/{entity_id}/{partner.partner_id}"
    listed = await visitor.get(path)
    shown = await visitor.get(f"{path}/claims/{claim_id}")
    assert "Open this claim" in listed.text  # too large to open it for a line
    assert f"The first {ROWS_SHOWN} of 1,000 invoices." in shown.text
    assert "999,999,999,999,999,990.00" in shown.text
    assert max(len(page.content) for page in (listed, shown)) < PAGE_BYTES_MAX * 3 // 4


async def test_a_partner_is_known_by_what_the_team_verified(world):
    """Website, address and since when; a website that nobody verified is not shown."""
    partners = world.service.partners
    partner = await world.partner()
    link = await link_of(partner)
    shown = (await Visitor(world).get(link)).text
    assert re.search(r"\w+@<strong>example.com<", shown)
    assert "Partner since" in shown
    assert "verified" not in shown
    words = {"company": "Company", "contact_name": "Somebody", "use": "Use", "cause": STAFF}
    applied = await partners.apply(**words, email="new@example.com", website="www.example.com")
    assert (await partners.profile(applied)) == Profile("Company", "new@example.com", None, None)
    await partners.approve(applied, STAFF, "www.example.com")
    profile = await partners.profile(applied)
    assert (profile.website, profile.since is None) == ("www.example.com", False)


async def test_a_connection_that_exists_is_shown_before_the_button(world):
    """Nothing is left to approve with one business; with two, only the other can be chosen."""
    partner, entity_id, visitor = await connected(world)
    link = await link_of(partner)
    page = (await visitor.get(link)).text
    assert "is already connected to" in page
    assert f'href="/account/{entity_id}/{partner.partner_id}"' in page
    assert 'value="approve"' not in page
    other = await business(world, "Other", another=True)
    page = (await visitor.get(link)).text
    assert "is already connected to" in page
    assert f'name="entity_id" value="{other}"' in page
    assert 'value="approve"' in page


async def test_a_person_chooses_to_be_told_of_stages(world):
    """For each business of theirs, and for nobody else's."""
    await business(world)
    other = await business(world, "Other", another=True)
    visitor = await Visitor(world).sign_in(EMAIL)
    assert "checked" not in (await visitor.get("/account")).text
    chosen = await visitor.post("/account/mails", entity_id=other, stage_mails="on")
    page = (await visitor.get(chosen.headers["location"])).text
    assert page.index(">Other<") < page.index("email you when") < page.index("checked")
    assert page.count("checked") == 1
    chosen = await visitor.post("/account/mails", entity_id=other)
    page = (await visitor.get(chosen.headers["location"])).text
    assert ("checked" in page, page.count("email you about the stages")) == (False, 1)
    stranger = await Visitor(world).sign_in("stranger@example.com")
    refused(await stranger.post("/account/mails", entity_id=other), 404, "entity_not_found")
