"""Refused links and choices on customers' pages: code, status, and what to do next."""

import re
from dataclasses import replace

import pytest

from service.http.rate_limit.limiter import POSTS_PER_MINUTE
from tests.pages.customers import business, link_of, mailbox, onboarding, refused
from tests.pages.forms import forms_of
from tests.pages.visitor import Visitor, local
from tests.tables import every_row
from tests.world import STAFF

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def world(module_world):
    """Return the world of all tests here: each has a partner and addresses of its own."""
    return module_world


@pytest.fixture
def email():
    """Return the address of a customer."""
    return mailbox()


async def run(world, statement, *values):
    """Run a statement on the live ledger's tables."""
    async with world.service.modes["live"].ledger.transaction() as transaction:
        await transaction.connection.execute(statement, *values)


async def test_invalid_connect_links_are_refused(world, email):
    """Unknown, expired, used and declined links get the contract's code on GET and POST."""
    partner = await world.partner()
    entity_id, other = (
        await business(world, email=email),
        await business(world, "Brewery", email, another=True),
    )
    visitor = await Visitor(world).sign_in(email)
    used, declined, expired = [await link_of(partner) for _ in range(3)]
    answer = await visitor.post(used, answer="approve", entity_id=entity_id)
    assert answer.headers["location"] == f"/connected/{entity_id}/{partner.partner_id}"
    assert (await visitor.post(declined, answer="decline")).headers["location"] == (
        "/connect/declined"
    )
    await run(
        world,
        "update live.connect_links set expires_at = now() where link_id ="
        " (select link_id from live.connect_links where state = 'issued' and partner_id = $1)",
        partner.partner_id,
    )
    for path, status, code in [
        ("/connect/unknown", 400, "connect_token_invalid"),
        (declined, 400, "connect_token_invalid"),
        (expired, 400, "connect_token_expired"),
        (used, 409, "connect_token_already_redeemed"),
    ]:
        refused(await Visitor(world).get(path), status, code)
        refused(await visitor.post(path, answer="approve", entity_id=other), status, code)


async def test_a_linked_entity_is_a_conflict(world, email):
    """A second link for the same business: 409 with a link to the account."""
    partner = await world.partner()
    entity_id = await business(world, email=email)
    await partner.connect(entity_id)
    visitor = await Visitor(world).sign_in(email)
    answer = await visitor.post(await link_of(partner), answer="approve", entity_id=entity_id)
    refused(answer, 409, "entity_already_linked")
    assert 'href="/account"' in answer.text


async def test_one_of_several_businesses_is_chosen(world, email):
    """Each is offered; no choice is a field error; the chosen one is connected."""
    partner = await world.partner()
    await business(world, "Bakery", email)
    second = await business(world, "Brewery", email, another=True)
    visitor = await Visitor(world).sign_in(email)
    path = await link_of(partner)
    page = (await visitor.get(path)).text
    assert page.count('type="radio"') == 2
    unchosen = await visitor.post(path, answer="approve")
    assert unchosen.status_code == 400
    assert 'id="entity-fault"' in unchosen.text
    answer = await visitor.post(path, answer="approve", entity_id=second)
    assert answer.headers["location"] == f"/connected/{second}/{partner.partner_id}"
    shown = await visitor.get(answer.headers["location"])
    assert second in shown.text
    assert "Brewery" in shown.text


async def test_businesses_of_one_name_are_told_apart(world, email):
    """By their ids, which the account has, too; a name of its own is enough for any other."""
    partner = await world.partner()
    same = [await business(world, "Bakery", email, another=number > 0) for number in range(2)]
    other = await business(world, "Brewery", email, another=True)
    visitor = await Visitor(world).sign_in(email)
    page = (await visitor.get(await link_of(partner))).text
    assert all(f"Bakery <code>{entity_id}</code>" in page for entity_id in same)
    assert f"<code>{other}</code>" not in page


async def test_another_persons_business_is_not_found(world, email):
    """It looks like one that does not exist, and nothing is connected."""
    partner = await world.partner()
    theirs = await business(world, "Theirs", "other@example.com")
    await business(world, email=email)
    await partner.connect(theirs)
    visitor = await Visitor(world).sign_in(email)
    link = await link_of(partner)
    for entity_id in (theirs, "ent_none"):
        answer = await visitor.post(link, answer="approve", entity_id=entity_id)
        refused(answer, 404, "entity_not_found")
        below = f"{entity_id}/{partner.partner_id}"
        for path in (f"/connected/{below}", f"/account/{below}", f"/account/{below}/disconnect"):
            refused(await visitor.get(path), 404, "entity_not_found")
        refused(await visitor.post(f"/account/{below}/disconnect"), 404, "entity_not_found")
    access = await world.service.modes["live"].connection_list.access(partner.partner_id, theirs)
    assert access.connected


async def test_a_person_without_a_business_cannot_approve(world):
    """The page names the address and explains how to use another one."""
    partner = await world.partner()
    visitor = await Visitor(world).sign_in("nobody@example.com")
    path = await link_of(partner)
    page = (await visitor.get(path)).text
    assert "nobody@example.com" in page
    assert f'href="/sign-in?next={path}"' in page
    assert 'value="approve"' not in page
    assert "nobody@example.com" in (await visitor.get("/account")).text


async def test_a_person_without_a_business_cannot_decline(world, email):
    """A person who intercepts a link cannot void it; the customer can still approve."""
    partner = await world.partner()
    entity_id = await business(world, email=email)
    path = await link_of(partner)
    stranger = await Visitor(world).sign_in("nobody@example.com")
    refused(await stranger.post(path, answer="decline"), 404, "entity_not_found")
    visitor = await Visitor(world).sign_in(email)
    answer = await visitor.post(path, answer="approve", entity_id=entity_id)
    assert answer.headers["location"] == f"/connected/{entity_id}/{partner.partner_id}"


async def test_a_link_of_test_mode_says_so(world, email):
    """Nobody can approve it, and the page says what to ask for instead."""
    partner = await world.partner()
    body = {"partner_user_id": "u"}
    answer = await partner.call("POST", "/connect-requests", mode="test", json=body)
    path = local(answer.json()["connect_url"])
    visitor = await Visitor(world).sign_in(email)
    for shown in (await Visitor(world).get(path), await visitor.post(path, answer="approve")):
        title = refused(shown, 400, "connect_token_invalid")
        assert title == "This is a test-mode link"
        assert "cut off" not in shown.text


async def test_an_invalid_answer_is_refused(world, email):
    """Anything but approve and decline is a named fault."""
    partner = await world.partner()
    visitor = await Visitor(world).sign_in(email)
    refused(await visitor.post(await link_of(partner), answer="maybe"), 400, "validation_failed")


async def test_an_unconnected_partner_is_not_found(world, email):
    """There is nothing to see and nothing to end."""
    partner = await world.partner()
    below = f"{await business(world, email=email)}/{partner.partner_id}"
    visitor = await Visitor(world).sign_in(email)
    for path in (f"/connected/{below}", f"/account/{below}", f"/account/{below}/disconnect"):
        refused(await visitor.get(path), 403, "entity_not_owned")


async def test_disconnecting_twice_changes_nothing(world, email):
    """The second time there is nothing to confirm."""
    partner = await world.partner()
    entity_id = await business(world, email=email)
    await partner.connect(entity_id)
    path = f"/account/{entity_id}/{partner.partner_id}"
    visitor = await Visitor(world).sign_in(email)
    version = await visitor.version(f"{path}/disconnect")
    for _ in range(2):
        answer = await visitor.post(f"{path}/disconnect", version=version)
        assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert (await visitor.get(f"{path}/disconnect")).headers["location"] == path
    assert (await partner.claim(entity_id)).json()["code"] == "partner_disconnected"


async def test_a_customer_is_told_who_ended_a_connection(world, email):
    """Themselves, or our team on their behalf."""
    partner = await world.partner()
    entity_id = await business(world, email=email)
    visitor = await Visitor(world).sign_in(email)
    path = f"/account/{entity_id}/{partner.partner_id}"
    for by_team in (True, False):
        await partner.connect(entity_id)
        if by_team:
            live = world.service.modes["live"].connections
            await live.disconnect(entity_id, partner.partner_id, STAFF)
        else:
            await visitor.confirm(f"{path}/disconnect")
        shown = (await visitor.get(path)).text
        assert ("Our team disconnected" in shown, "You disconnected" in shown) == (
            by_team,
            not by_team,
        )


@pytest.mark.parametrize("version", ["as it was", "", "-1", "x", "9" * 5000])
async def test_a_form_of_an_earlier_connection_ends_no_later_one(world, email, version):
    """Sent again after the partner was connected again, it is outdated: nothing is changed."""
    partner = await world.partner()
    entity_id = await business(world, email=email)
    await partner.connect(entity_id)
    path = f"/account/{entity_id}/{partner.partner_id}/disconnect"
    visitor = await Visitor(world).sign_in(email)
    earlier = await visitor.version(path)
    await visitor.post(path, version=earlier)
    await partner.connect(entity_id)
    given = earlier if version == "as it was" else version
    title = refused(await visitor.post(path, version=given), 409, "form_outdated")
    assert title == "This has changed in the meantime"
    assert (await partner.claim(entity_id)).status_code == 201
    assert (await visitor.confirm(path)).status_code == 303
    assert (await partner.claim(entity_id)).json()["code"] == "partner_disconnected"


async def test_claims_are_paged(world, email):
    """Twenty-five per page, newest first, each once; an invalid page is a fault."""
    partner = await world.partner()
    entity_id = await business(world, email=email)
    await partner.connect(entity_id)
    for number in range(28):
        await partner.claim(entity_id, f"case-{number:02}")
    visitor = await Visitor(world).sign_in(email)
    path = f"/account/{entity_id}/{partner.partner_id}"
    first = (await visitor.get(path)).text
    older = re.search(r'href="(\?from=[^"]+)"', first)
    assert older
    second = (await visitor.get(path + older[1])).text
    found = [re.findall(r"case-\d\d", page) for page in (first, second)]
    assert [len(one) for one in found] == [25, 3]
    assert found[0] + found[1] == [f"case-{number:02}" for number in range(27, -1, -1)]
    assert f'href="{path}"' in second
    refused(await visitor.get(f"{path}?from=clm_none"), 400, "validation_failed")


async def test_onboarding_corrects_and_completes(world):
    """What is posted is stored; the page after it survives reloads for an hour."""
    partner = await world.partner()
    path = await onboarding(
        world, partner, mailbox(), company_name="Bakry", address={"postcode": "AB1"}
    )
    visitor = Visitor(world)
    assert 'value="Bakry"' in (await visitor.get(path)).text
    form = {"company_name": "Bakery", "locality": "London", "postcode": "AB1 2CD"}
    answer = await visitor.post(path, **form)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}/done")
    done = [await Visitor(world).get(f"{path}/done") for _ in range(2)]
    ids = {re.findall(r"<code[^>]*>(ent_\w+)</code>", one.text)[0] for one in done}
    assert len(ids) == 1
    assert "Bakery" in done[0].text
    assert (await partner.claim(ids.pop())).status_code == 201
    await run(
        world,
        "update live.onboardings set completed_at = now() - interval '61 min'"
        " where partner_id = $1",
        partner.partner_id,
    )
    refused(await visitor.get(f"{path}/done"), 409, "magic_link_already_used")


async def test_onboarding_faults_are_shown_at_their_fields(world):
    """Every faulty field says so and keeps its input; nothing is finished."""
    partner = await world.partner()
    path = await onboarding(world, partner, mailbox())
    answer = await Visitor(world).post(path, company_name="", region="r" * 256, country="GB")
    assert answer.status_code == 400
    assert 'id="company_name-fault"' in answer.text
    assert 'id="region-fault"' in answer.text
    assert 'id="country-fault"' not in answer.text
    assert '<a href="#company_name">Business name: must not be empty</a>' in answer.text
    assert 'value="GB"' in answer.text
    refused(await Visitor(world).get(f"{path}/done"), 400, "magic_link_invalid")
    assert (await Visitor(world).get(path)).status_code == 200


async def test_invalid_onboarding_links_are_refused(world):
    """Unknown, expired and used links, and those of an established business."""
    partner = await world.partner()
    used = await onboarding(world, partner, "used@example.com")
    expired = await onboarding(world, partner, "expired@example.com")
    taken = await onboarding(world, partner, "taken@example.com")
    await business(world, "Taken", "taken@example.com")
    visitor = Visitor(world)
    assert (await visitor.post(used, company_name="Used")).status_code == 303
    await run(
        world,
        "update live.onboardings set expires_at = now()"
        " where partner_user_id = 'expired@example.com' and partner_id = $1",
        partner.partner_id,
    )
    for path, status, code in [
        ("/onboarding/unknown", 400, "magic_link_invalid"),
        (expired, 400, "magic_link_expired"),
        (used, 409, "magic_link_already_used"),
    ]:
        refused(await visitor.get(path), status, code)
        if path != used:  # which leads to what the first form did
            refused(await visitor.post(path, company_name="Again"), status, code)
    refused(await visitor.get("/onboarding/unknown/done"), 400, "magic_link_invalid")
    answer = await visitor.post(taken, company_name="Taken")
    refused(answer, 422, "onboarding_unavailable")


async def test_a_company_number_that_is_taken_can_be_corrected(world, email):
    """The form comes back as it was sent, in the same words where it is the address that is."""
    partner, visitor = await world.partner(), Visitor(world)
    entities = world.service.modes["live"].entities
    await entities.add("Numbered", "numbered@example.com", "01234567", STAFF)
    mistyped, known = [await onboarding(world, partner, address) for address in (mailbox(), email)]
    await business(world, email=email)
    told, entered = set[str](), {"company_name": "Mine", "user_name": "N", "locality": "Town"}
    for path, number in ((mistyped, "0123 4567"), (known, "99")):
        sent = entered | {"company_number": number}
        answer = await visitor.post(path, **sent)
        fields = forms_of(answer.text, path)[path].fields
        assert (answer.status_code, fields | sent) == (422, fields)
        told |= set(re.findall(r'<div class="notice bad".*?</div>', answer.text))
    assert len(told) == 1
    answer = await visitor.post(mistyped, **entered, company_number="01234568")
    assert answer.headers["location"] == f"{mistyped}/done"


async def test_a_returned_link_takes_signing_in(world):
    """It leads to signing in and back; another person is refused, and the right one finishes.

    Before, it says who asks, and enough of the address for its person to know which one to use.
    """
    partner = await world.partner()
    await world.service.partners.change_settings(partner.partner_id, STAFF, return_link=True)
    new = f"n{mailbox()}"
    body = {"partner_user_id": "u", "company_name": "New", "user_email": new}
    answer = await partner.call("POST", "/onboardings", json=body)
    path = local(answer.json()["magic_link_url"])
    stranger = Visitor(world)
    shown = await stranger.get(path)
    assert (shown.status_code, f'href="/sign-in?next={path}"' in shown.text) == (200, True)
    (row,) = await world.service.partner_list.partners(partner.partner_id)
    for told in (row["name"], "n…@example.com", "recognise the domain of this address"):
        assert told in shown.text
    for untold in (new, "this website", body["company_name"] + "<"):
        assert untold not in shown.text
    posted = await stranger.post(path, company_name="Theirs")
    assert (posted.status_code, posted.headers["location"]) == (303, f"/sign-in?next={path}")
    other = await Visitor(world).sign_in("partner@example.com")
    told = await other.get(path)
    assert (told.status_code, f'href="/sign-in?next={path}"' in told.text) == (403, True)
    for words in ("partner@example.com", "n…@example.com", "Sign in with a different address"):
        assert words in told.text
    refused(await other.post(path, company_name="Theirs"), 403, "onboarding_needs_sign_in")
    person = await Visitor(world).sign_in(new.upper())
    assert (await person.get(path)).status_code == 200
    done = (await person.post(path, company_name="Mine")).headers["location"]
    assert done == f"{path}/done"
    assert (await person.get(done)).status_code == 200
    assert (await stranger.get(done)).status_code == 303
    refused(await other.get(done), 403, "onboarding_needs_sign_in")


@pytest.mark.parametrize("kind", ["connect", "onboarding"])
async def test_opening_a_link_does_not_use_it(world, email, kind):
    """After a hundred GETs and HEADs the person can still answer."""
    partner = await world.partner()
    entity_id = await business(world, email=email)
    path = await (link_of(partner) if kind == "connect" else onboarding(world, partner, mailbox()))
    scanner = Visitor(world)
    for _ in range(50):
        assert (await scanner.get(path)).status_code == 200
        assert (await scanner.client.head(path)).status_code == 200
    visitor = await Visitor(world).sign_in(email)
    fields = {"answer": "approve", "entity_id": entity_id, "company_name": "New"}
    assert (await visitor.post(path, **fields)).status_code == 303


async def test_markup_in_names_stays_text(world, email):
    """In the partner's label, the business and the person's name."""
    partner = await world.partner()
    evil = "<script>alert(1)</script>"
    await business(world, evil, email)
    body = {"partner_user_id": "u", "label": evil}
    answer = await partner.call("POST", "/connect-requests", json=body)
    visitor = await Visitor(world).sign_in(email)
    pages = [
        await visitor.get(local(answer.json()["connect_url"])),
        await visitor.get("/account"),
        await visitor.get(
            await onboarding(world, partner, mailbox(), company_name=evil, user_name=evil)
        ),
    ]
    for page in pages:
        assert "<script>alert" not in page.text
        assert "&lt;script&gt;alert" in page.text


async def test_what_nobody_sees_is_shown_wherever_a_partner_wrote_it(world, email):
    """In names, labels and references, on pages of customers, of the console and of the team."""
    partner = await world.partner()
    evil, shown = "a\u202eb\u200bc", "a[U+202E]b[U+200B]c"
    entity_id = await business(world, evil, email)
    await partner.connect(entity_id)
    await partner.claim(entity_id, evil)
    body = {"partner_user_id": evil, "label": evil}
    link = local((await partner.call("POST", "/connect-requests", json=body)).json()["connect_url"])
    names = dict.fromkeys(("company_name", "user_name", "partner_user_id"), evil)
    await onboarding(world, partner, mailbox(), **names)
    await world.service.partners.add_member(partner.partner_id, email, STAFF)
    await world.service.staff.add(email, STAFF)
    visitor = await Visitor(world).sign_in(email)
    console, backoffice = f"/console/{partner.partner_id}", "/backoffice"
    with every_row() as row:
        for path in (
            *("/account", f"/account/{entity_id}/{partner.partner_id}", link),
            *(f"{console}/{name}" for name in ("claims", "links", "onboardings")),
            *(f"{backoffice}/entities/{entity_id}", f"{backoffice}/timeline/{entity_id}"),
        ):
            with row(path):
                page = (await visitor.get(path)).text
                assert shown in page
                assert {"\u202e", "\u200b"} & set(page) == set()


async def test_what_nobody_sees_is_refused_in_forms(world, email):
    """Where a person enters a name, at its field, which holds what was refused."""
    partner = await world.partner()
    path = await onboarding(world, partner, mailbox())
    fields = ("company_name", "company_number", "user_name", "first_line", "country")
    answer = await Visitor(world).post(path, **dict.fromkeys(fields, "a\u202eb"))
    assert answer.status_code == 400
    assert [one for one in fields if f'id="{one}-fault"' not in answer.text] == []
    assert 'value="a\u202eb"' in answer.text
    assert "[U+" not in answer.text
    visitor = await Visitor(world).sign_in(email)
    form = {"company": "a\u2066b", "contact_name": "a\x85b", "use": "one\r\ntwo\u200bthree"}
    answer = await visitor.post("/console/apply", **form)
    assert answer.status_code == 400
    assert [one for one in form if f'id="{one}-fault"' not in answer.text] == []


async def test_a_partner_s_domain_stands_beside_its_name(world):
    """Where a person consents to it: names look alike, domains in ASCII do not."""
    partners = world.service.partners
    partner = await world.partner()
    imitator = await partners.add("Partner", "sales@xn--prtner-6pf.Example", STAFF)
    await partners.approve(imitator, STAFF)
    for partner_id, domain in (
        (partner.partner_id, "example.com"),
        (imitator, "xn--prtner-6pf.example"),
    ):
        key = await partners.issue_key(partner_id, "live", STAFF)
        one = replace(partner, partner_id=partner_id, keys={"live": key.token})
        for path in (await link_of(one), await onboarding(world, one, f"{domain}@example.com")):
            assert f"<strong>{domain}</strong>" in (await Visitor(world).get(path)).text


async def test_a_link_takes_so_many_forms_a_minute(world, email):
    """From however many networks; its page can still be opened, and other links take theirs."""
    partner = await world.partner()
    taken = await onboarding(world, partner, email)
    await business(world, "Taken", email)
    statuses = [
        (await Visitor(world, f"192.0.2.{number}").post(taken, company_name="Taken")).status_code
        for number in range(POSTS_PER_MINUTE)
    ]
    assert statuses == [422] * POSTS_PER_MINUTE
    visitor = Visitor(world, "192.0.2.99")
    answer = await visitor.post(taken, company_name="Taken")
    refused(answer, 429, "rate_limited")
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert (await visitor.get(taken)).status_code == 200
    other = await onboarding(world, partner, mailbox())
    assert (await visitor.post(other, company_name="New")).status_code == 303


async def test_a_network_sends_so_many_forms_by_links(world):
    """Whichever links they are, known or not; other networks send theirs, and by the same link."""
    link = await onboarding(world, await world.partner(), mailbox())
    visitor = Visitor(world, "198.51.100.1")
    for number in range(POSTS_PER_MINUTE):
        refused(await visitor.post(f"/onboarding/guess-{number}"), 400, "magic_link_invalid")
    for _ in range(POSTS_PER_MINUTE):
        refused(await visitor.post(link, company_name="New"), 429, "rate_limited")
    other = await Visitor(world, "198.51.100.2").post(link, company_name="New")
    assert other.status_code == 303
