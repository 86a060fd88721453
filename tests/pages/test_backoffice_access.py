"""Access to the back office and the input that its pages refuse, without a browser."""

import re

import psycopg
import pytest

from service.facts.claims import STAGES, Document, DocumentFlagged, DocumentsAttached
from service.facts.privacy import PersonalDataErased
from service.ledger.writing import Append
from service.people.sessions import Person
from tests.pages.visitor import Visitor
from tests.world import STAFF

PAGES = (
    "/backoffice",
    "/backoffice/partners",
    "/backoffice/partners/{partner}",
    "/backoffice/partners/{partner}/revoke",
    "/backoffice/entities/{entity}",
    "/backoffice/entities/{entity}/connect?partner_id={partner}",
    "/backoffice/entities/{entity}/handed/{partner}",
    "/backoffice/entities/{entity}/disconnect/{partner}",
    "/backoffice/claims/{claim}",
    "/backoffice/timeline/{claim}",
    "/backoffice/health",
    "/backoffice/mails",
)
FORMS = (
    "/backoffice",
    "/backoffice/partners/{partner}/review",
    "/backoffice/partners/{partner}/approve",
    "/backoffice/partners/{partner}/website",
    "/backoffice/partners/{partner}/decline",
    "/backoffice/partners/{partner}/revoke",
    "/backoffice/entities/{entity}/connect",
    "/backoffice/entities/{entity}/disconnect/{partner}",
    "/backoffice/claims/{claim}/stage",
    "/backoffice/claims/{claim}/personal",
)

EVENTS = {
    "accounts": "select count(*) from accounts.events",
    "live": "select count(*) from live.events",
    "test": "select count(*) from test.events",
}


@pytest.fixture
async def ids(world):
    """Return the ids of a partner, a business and a claim, and the addresses of their people."""
    partner = await world.partner()
    live = world.service.modes["live"]
    entity = await live.entities.add("Bakery", "owner@example.com", None, STAFF)
    await partner.connect(entity)
    await world.service.partners.add_member(partner.partner_id, "dev@example.com", STAFF)
    claim = (await partner.claim(entity, message="A private message.")).json()["claim_id"]
    return {"partner": partner.partner_id, "entity": entity, "claim": claim}


async def sizes(world):
    """Return each ledger's number of events: a refused post adds none."""
    counts = []
    for ledger in world.service.ledgers:
        async with ledger.database.writes.connection() as connection:
            counts.append(await connection.fetchval(EVENTS[ledger.name]))
    return counts


async def test_only_staff_have_access(world, ids):
    """Outsiders, customers, members of partners and former staff get 403; no event."""
    await world.service.staff.add("former@example.com", STAFF)
    await world.service.staff.remove("former@example.com", STAFF)
    before = await sizes(world)
    for who in ("nobody", "owner", "dev", "former"):
        visitor = await Visitor(world).sign_in(f"{who}@example.com")
        answers = [await visitor.get(path.format(**ids)) for path in PAGES]
        answers += [await visitor.post(path.format(**ids), stage="closed") for path in FORMS]
        assert [answer.status_code for answer in answers] == [403] * (len(PAGES) + len(FORMS)), who
        assert all("not_staff" in answer.text for answer in answers), who
        assert await sizes(world) == before, who


async def test_staff_see_every_page(ids, staff):
    """Each page answers, and none shows a claim's personal data."""
    for path in PAGES:
        answer = await staff.get(path.format(**ids))
        assert answer.status_code == 200, path
        assert "Debtor" not in answer.text
        assert "A private message." not in answer.text


async def test_what_checks_found_in_documents_is_shown_to_staff(world, ids, staff):
    """On the claim's page, beside the document, and in a list on the first page."""
    live = world.service.modes["live"]
    row = await live.claim_list.by_id(ids["claim"])
    pdf = Document("doc_1", "entities/x.pdf", "application/pdf", 1, 1, "AAAAAA==")
    found = [
        DocumentsAttached(ids["claim"], [pdf]),
        DocumentFlagged(ids["claim"], "doc_1", "type_mismatch", "text/html"),
        DocumentFlagged(ids["claim"], "doc_1", "malware", "<b>Test</b>"),
    ]
    async with live.ledger.transaction() as transaction:
        past = await transaction.read(row["stream_id"])
        await transaction.append(Append(row["stream_id"], len(past), found, STAFF))
    shown = (await staff.get(f"/backoffice/claims/{ids['claim']}")).text
    for text in ("Not the declared type", "text/html", "Malware found", "&lt;b&gt;Test&lt;/b&gt;"):
        assert text in shown
    listed = (await staff.get("/backoffice")).text
    assert listed.count(f'href="/backoffice/claims/{ids["claim"]}"') == 2


async def test_what_waits_for_the_team_is_on_the_first_page(world, owner, ids, staff):
    """Partners, endpoints that were paused, and what stands still, each with where to go."""
    empty = (await staff.get("/backoffice")).text
    assert "Nothing is waiting" in empty
    await world.service.partners.add("Books", "p@example.com", STAFF)
    endpoints, partner = world.service.endpoints, ids["partner"]
    for mode, reason in (("live", "gone"), ("live", "member"), ("test", "failing")):
        endpoint = endpoints.new_endpoint_id()
        url = f"https://hooks.example.com/{reason}"
        await endpoints.add(partner, endpoint, mode, url, [], STAFF)
        await endpoints.disable(partner, endpoint, reason, STAFF)
    for ledger, name in (("live", "processing"), ("accounts", "activity")):
        statement = "insert into {0}.parked select %s, 1, originator_id, 'x', now() from {0}.events"
        owner.execute(f"{statement.format(ledger)} limit 1", [name])
    owner.execute("insert into test.set_aside (append_id, reason) values (1, 'gone')")
    page = (await staff.get("/backoffice")).text
    for text in (
        "1 partner awaiting review",
        '<a href="/backoffice/health#hand_over">Messages that were not handed over, in live: 1</a>',
        '<a href="/backoffice/health#parked">Parked by activity in accounts: 1</a>',
        '<a href="/backoffice/health#set_aside">Events set aside in test: 1</a>',
    ):
        assert text in page
    assert page.count(f'<a href="/backoffice/partners/{partner}">Tell ') == 1
    assert "answered 410 Gone" in page
    assert "hooks.example.com" not in page
    health = (await staff.get("/backoffice/health")).text
    assert all(f'id="{place}"' in health for place in ("parked", "hand_over", "set_aside"))


async def test_unknown_ids_are_404(staff):
    """The page says so, whatever the id looks like."""
    nothing = dict.fromkeys(("partner", "entity", "claim"), "no_such<b>thing")
    fields = {"stage": "closed", "reason": "r", "partner_id": "p"}
    answers = [await staff.get(path.format(**nothing)) for path in PAGES[2:10]]
    answers += [await staff.post(path.format(**nothing), **fields) for path in FORMS[1:]]
    for answer in answers:
        assert (answer.status_code, "<b>" in answer.text) == (404, False), answer.url


async def test_an_unknown_stage_is_a_field_error(world, ids, staff):
    """The page returns with the allowed stages; the claim keeps its stage."""
    answer = await staff.post(f"/backoffice/claims/{ids['claim']}/stage", stage="won")
    assert answer.status_code == 400
    assert "expected one of triage" in answer.text
    row = await world.service.modes["live"].claim_list.by_id(ids["claim"])
    assert row["stage"] == STAGES[0]


async def test_a_stage_that_was_not_seen_is_not_left(world, ids, staff):
    """A colleague moved the claim after the page was made; the same form twice is no conflict."""
    path = f"/backoffice/claims/{ids['claim']}"
    (seen,) = re.findall(r'name="seen" value="(\w+)"', (await staff.get(path)).text)
    for _ in range(2):
        first = await staff.post(f"{path}/stage", stage="settled", seen=seen)
        assert first.status_code == 303
    late = await staff.post(f"{path}/stage", stage="letter_before_action", seen=seen)
    assert (late.status_code, "Someone moved this claim" in late.text) == (409, True)
    assert '<option value="settled" selected>' in late.text
    row = await world.service.modes["live"].claim_list.by_id(ids["claim"])
    assert row["stage"] == "settled"


async def test_an_invalid_reason_is_a_field_error(world, staff):
    """Missing, blank, too long, or with what nobody sees: the partner stays pending."""
    partner_id = await world.service.partners.add("Books", "p@example.com", STAFF)
    for reason in ("", "   ", "r" * 1001, "no\u202eton"):
        answer = await staff.post(f"/backoffice/partners/{partner_id}/decline", reason=reason)
        assert (answer.status_code, 'aria-invalid="true"' in answer.text) == (400, True)
    assert (await world.service.partners.look(partner_id)).status == "pending"


async def test_a_fault_takes_the_focus(world, ids, staff):
    """Whichever form has it: an alert above the form leads to the field."""
    partners = world.service.partners
    partner_id = await partners.add("Books", "p@example.com", STAFF)
    await partners.add_member(ids["partner"], "dev@example.com", STAFF)
    member = await Visitor(world).sign_in("dev@example.com")
    page, claim = f"/backoffice/partners/{partner_id}", f"/backoffice/claims/{ids['claim']}"
    hand = f"/backoffice/entities/{ids['entity']}/connect"
    for field, answer in (
        ("note", await staff.post(f"{page}/review", review_version="0", note="n" * 501)),
        ("website", await staff.post(f"{page}/approve", version="1", website="w" * 254)),
        ("reason", await staff.post(f"{page}/decline", version="1", reason="")),
        ("stage", await staff.post(f"{claim}/stage", stage="none", seen="triage")),
        ("stage", await staff.post(f"{claim}/stage", stage="settled", seen="closed")),
        ("partner_id", await staff.get(hand, params={"partner_id": "ptn_none"})),
        ("email", await member.post(f"/console/{ids['partner']}/team", email="none")),
    ):
        alert = answer.text.partition('role="alert" tabindex="-1" autofocus')[2]
        assert answer.status_code in {400, 409}, field
        assert alert.partition("</div>")[0].count(f'<a href="#{field}">') == 1, field


async def test_a_name_of_several_alphabets_is_pointed_out(world, staff):
    """Where the team reviews the partner; of one in another alphabet that alphabet is named."""
    mixed, other = "P\u0430yments", "\u0405\u0441\u043e\u0440\u0435"
    mixes = f"{mixed}</bdi> mixes alphabets (Cyrillic, Latin)"
    is_other = f"{other}</bdi> is written in Cyrillic letters"
    for number, (company, contact, notices) in enumerate(
        (
            (mixed, "Dev", {mixes}),
            (other, mixed, {mixes, is_other}),
            ("Payments", other, {is_other}),
            ("Payments", "Dev", set()),
        )
    ):
        partner_id = await world.service.partners.apply(
            company=company,
            contact_name=contact,
            use="Claims",
            email=f"p{number}@example.com",
            cause=STAFF,
        )
        page = (await staff.get(f"/backoffice/partners/{partner_id}")).text
        assert {one for one in (mixes, is_other) if one in page} == notices


async def test_ids_that_only_events_have_are_found(world, ids, staff):
    """Messages, and requests without a logged call; in capitals too."""
    claim = await world.service.modes["live"].claims.show(ids["claim"])
    path = f"/backoffice/claims/{ids['claim']}/stage"
    moved = await staff.post(path, stage="closed", seen=STAGES[0])
    for sought in (claim.message.message_id, moved.headers["x-request-id"]):
        for typed in (sought, sought.upper(), f"  {sought} "):
            answer = await staff.post("/backoffice", sought=typed)
            assert answer.headers["location"] == f"/backoffice/timeline/{sought}"
            assert (await staff.get(answer.headers["location"])).status_code == 200


async def test_ids_are_found_in_capitals(ids, staff):
    """Mail programs and phones may change the case."""
    for kind, place in (("claim", "claims"), ("entity", "entities"), ("partner", "partners")):
        answer = await staff.post("/backoffice", sought=ids[kind].upper())
        assert answer.headers["location"] == f"/backoffice/{place}/{ids[kind]}"


async def test_a_person_of_an_event_is_found(world, ids, staff):
    """Their id is shown beside the address on the partner's page, and can be searched for."""
    secrets = await world.service.secrets.get()
    persons = {
        email: Person(email, secrets.lookup_email(email), "").person_id
        for email in ("dev@example.com", "team@example.com", "owner@example.com", "no@example.com")
    }
    page = (await staff.get(f"/backoffice/partners/{ids['partner']}")).text
    assert persons["dev@example.com"] in page
    for email, kind, belongs in (
        ("dev@example.com", "Partner team member", ids["partner"]),
        ("team@example.com", "Member of our team", "stf_"),
        ("owner@example.com", "Business", ids["entity"]),
        ("no@example.com", "Nothing has this ID", ""),
    ):
        assert persons[email] in (await staff.post("/backoffice", sought=email)).text
        answer = await staff.post("/backoffice", sought=persons[email].upper())
        if answer.status_code == 303:
            assert answer.headers["location"] == f"/backoffice/entities/{belongs}"
            continue
        assert kind.replace("&#39;", "'") in answer.text
        assert belongs in answer.text


async def test_former_members_are_found_by_address(world, ids, staff):
    """Former members of partners and of the team are shown with their state."""
    members = (await world.service.partners.look(ids["partner"])).members
    await world.service.partners.add_member(ids["partner"], "other@example.com", STAFF)
    for member_id in members:
        await world.service.partners.remove_member(ids["partner"], member_id, STAFF)
    await world.service.staff.add("dev@example.com", STAFF)
    await world.service.staff.remove("dev@example.com", STAFF)
    found = (await staff.post("/backoffice", sought="dev@example.com")).text
    assert found.count("<td>removed</td>") == 2
    assert ids["partner"] in found


async def test_what_was_erased_is_never_shown(world, ids, staff, owner):
    """Nor is it if somebody puts the key back; a key that is missing is called so."""
    path = f"/backoffice/claims/{ids['claim']}"
    owner.execute("create table public.kept as select * from live.data_keys")
    owner.execute("delete from live.data_keys")
    missing = await staff.post(f"{path}/personal")
    assert "its key is missing" in missing.text
    row = await world.service.modes["live"].claim_list.by_id(ids["claim"])
    erased = PersonalDataErased(subject=ids["claim"], data_key=row["stream_id"], reason="case 1")
    async with world.service.modes["live"].ledger.transaction() as transaction:
        version = len(await transaction.read(row["stream_id"]))
        await transaction.append(Append(row["stream_id"], version, [erased], STAFF))
    owner.execute("insert into live.data_keys select * from public.kept")
    for answer in (await staff.get(path), await staff.post(f"{path}/personal")):
        assert "It has been erased." in answer.text
        assert "A private message." not in answer.text


async def test_unrecorded_access_shows_no_personal_data(ids, staff, database_url):
    """Personal data is shown only after the event has been written."""
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(
            "revoke execute on all functions in schema accounts from claim_ledger_accounts"
        )
        answer = await staff.post(f"/backoffice/claims/{ids['claim']}/personal")
    assert answer.status_code >= 500
    assert "Debtor" not in answer.text


async def test_hostile_ids_are_404(staff):
    """NUL, emoji, thousands of characters, markup."""
    for text in ("%00", "a%00b", "%F0%9F%98%80", "x" * 3000, "%22%3E%3Cb%3E"):
        for place in ("partners", "entities", "claims", "timeline"):
            answer = await staff.get(f"/backoffice/{place}/{text}")
            assert answer.status_code in {400, 404}, (place, text)
            assert "<b>" not in answer.text, (place, text)
        answer = await staff.get(f"/backoffice/partners?state={text}&after={text}")
        assert answer.status_code == (404 if "%00" in text else 200), text


async def test_an_invalid_page_token_shows_the_first_page(ids, staff):
    """It is no server error."""
    for before in ("x", "-1", "9" * 19, "9" * 40, "\u0661", "1.5"):
        answer = await staff.get(f"/backoffice/entities/{ids['entity']}", params={"before": before})
        assert (answer.status_code, ids["claim"] in answer.text) == (200, True), before
