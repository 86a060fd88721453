"""Access to the back office and the input that its pages refuse, without a browser."""

import re
from datetime import timedelta

import psycopg
import pytest

from service.facts.claims import STAGES, Document, DocumentFlagged, DocumentsAttached
from service.facts.connections import connection_stream
from service.facts.privacy import PersonalDataErased
from service.ledger.writing import Append
from service.pages import words
from service.pages.formats import moment
from service.pages.visit import REVIEW_FIELD, STATUS_FIELD, VERSION_FIELD
from service.people.sessions import Person
from tests.pages.forms import forms_of
from tests.pages.visitor import Visitor
from tests.tables import every_row
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
OPEN = "select entity_id from live.entities where not established"


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


async def test_a_decision_is_on_what_the_page_showed(world, staff):
    """A colleague's decision since is shown instead; the same one again changes nothing."""
    partners = world.service.partners

    async def decided(partner_id, deed, version="1", **fields):
        path = f"/backoffice/partners/{partner_id}/{deed}"
        answer = await staff.post(path, version=version, **fields)
        is_told = "A colleague decided on this partner" in answer.text
        assert (answer.status_code, is_told) in {(303, False), (409, True)}
        return answer.status_code

    first, second = [await partners.add("Books", "p@example.com", STAFF) for _ in range(2)]
    await partners.add_member(first, "dev@example.com", STAFF)  # no decision
    await partners.decline(first, STAFF, "No imprint.")
    assert await decided(first, "approve", website="") == 409
    assert await decided(first, "decline", reason="Another.") == 409
    assert await decided(first, "decline", reason="No imprint.") == 303
    known = await partners.look(first)
    assert (known.status, known.reason) == ("declined", "No imprint.")
    assert await decided(second, "approve", website="example.com") == 303
    assert await decided(second, "approve", website="example.com") == 303
    assert await decided(second, "approve", website="") == 409
    assert await decided(second, "decline", reason="No imprint.") == 409
    assert (await partners.look(second)).verified_website == "example.com"
    assert await decided(first, "approve", "3", website="") == 303


async def test_a_website_is_verified_after_the_approval(world, staff):
    """In the team's name, and withdrawn again; the review beside it is saved, too."""
    partners = world.service.partners
    partner_id = await partners.add("Books", "p@example.com", STAFF)
    await partners.approve(partner_id, STAFF)
    page, stale = f"/backoffice/partners/{partner_id}", None
    for entered, website in (("https://Example.com/", "example.com"), ("", None)):
        form = forms_of((await staff.get(page)).text, page)[f"{page}/website"]
        sent = form.posted({**form.fields, "website": entered, "note": f"Says {entered}."})
        stale = stale or sent
        assert (await staff.post(f"{page}/website", **sent)).status_code == 303
        known = await world.service.reviews.look(partner_id)
        found = (known.partner.verified_website, known.review.note)
        assert found == (website, f"Says {entered}.")
        assert known.decisions[-1].by.actor.startswith("staff:stf_")
        assert "Verified website changed by" in (await staff.get(page)).text
    late = await staff.post(f"{page}/website", **stale)
    assert (late.status_code, "A colleague decided" in late.text) == (409, True)
    assert forms_of(late.text, page)[f"{page}/website"].fields["website"] == "https://Example.com/"
    fault = await staff.post(f"{page}/website", **{**sent, "website": "no website"})
    assert (fault.status_code, 'aria-invalid="true"' in fault.text) == (400, True)
    assert (await partners.look(partner_id)).verified_website is None


async def test_a_saved_note_takes_no_colleagues_website_back(world, staff):
    """The form has the website as they left it, so that it is not verified again by the way."""
    partners = world.service.partners
    partner_id = await partners.add("Books", "p@example.com", STAFF)
    await partners.approve(partner_id, STAFF, "example.com")
    page = f"/backoffice/partners/{partner_id}"
    form = forms_of((await staff.get(page)).text, page)[f"{page}/review"]
    await partners.verify_website(partner_id, STAFF, None)
    answer = await staff.post(f"{page}/review", **form.posted({**form.fields, "note": "Mine."}))
    assert words.text("backoffice.partner.saved_decided") in answer.text
    assert forms_of(answer.text, page)[f"{page}/website"].fields["website"] == ""


async def test_a_decision_saves_the_review(world, staff):
    """What was written beside it is not lost; where a colleague saved another, nothing is done.

    The form then has theirs, but for what its sender changed.
    """
    partners, reviews = world.service.partners, world.service.reviews
    await world.service.staff.add("team@example.com", STAFF)
    for deed, status, fields in (
        ("approve", "approved", {"website": "example.com"}),
        ("decline", "declined", {"reason": "No imprint."}),
    ):
        partner_id = await partners.add("Books", "p@example.com", STAFF)
        page = f"/backoffice/partners/{partner_id}"
        form = forms_of((await staff.get(page)).text, page)[f"{page}/{deed}"]
        sent = form.posted({**form.fields, **fields, "note": "Mine.", "check_register": "on"})
        await reviews.save(partner_id, ["contact"], "Theirs.", 0, STAFF)
        late = await staff.post(f"{page}/{deed}", **sent)
        assert (late.status_code, "saved or decided yet" in late.text) == (409, True)
        assert (await partners.look(partner_id)).status == "pending"
        again = forms_of(late.text, page)[f"{page}/{deed}"]
        assert again.posted(again.fields) == {**sent, REVIEW_FIELD: "1", "check_contact": "on"}
        answer = await staff.post(f"{page}/{deed}", **again.posted(again.fields))
        assert answer.status_code == 303
        known = await reviews.look(partner_id)
        found = (known.partner.status, known.review.note, list(known.review.checks))
        assert found == (status, "Mine.", ["register", "contact"])


async def test_what_was_left_alone_of_a_review_is_as_a_colleague_saved_it(world, staff):
    """Also where the form is sent again as it came back: ticks and notes that were never seen."""
    await world.service.staff.add("team@example.com", STAFF)
    reviews = world.service.reviews
    theirs = (["website", "contact"], "Theirs.")
    with every_row() as row:
        for changed, checks, note in (
            ({}, *theirs),
            ({"note": "Mine."}, ["website", "contact"], "Mine."),
            ({"check_website": ""}, ["contact"], "Theirs."),
            (
                {"check_register": "", "check_email_domain": "on"},
                ["website", "email_domain", "contact"],
                "Theirs.",
            ),
        ):
            with row(changed):
                partner_id = await world.service.partners.add("Books", "p@example.com", STAFF)
                page = f"/backoffice/partners/{partner_id}"
                await reviews.save(partner_id, ["website", "register"], "First.", 0, STAFF)
                form = forms_of((await staff.get(page)).text, page)[f"{page}/approve"]
                await reviews.save(partner_id, *theirs, 1, STAFF)
                filled = {**form.fields, "website": "example.com", **changed}
                late = await staff.post(f"{page}/approve", **form.posted(filled))
                again = forms_of(late.text, page)[f"{page}/approve"]
                assert (late.status_code, again.fields["website"]) == (409, "example.com")
                await staff.post(f"{page}/approve", **again.posted(again.fields))
                known = await reviews.look(partner_id)
                found = (known.partner.status, list(known.review.checks), known.review.note)
                assert found == ("approved", checks, note)


async def test_a_decision_that_comes_too_late_saves_nothing(world, staff):
    """What was written is on the page that says so."""
    await world.service.staff.add("team@example.com", STAFF)
    partner_id = await world.service.partners.add("Books", "p@example.com", STAFF)
    page = f"/backoffice/partners/{partner_id}"
    form = forms_of((await staff.get(page)).text, page)[f"{page}/decline"]
    sent = form.posted({**form.fields, "reason": "No imprint.", "note": "Mine."})
    version = int(form.hidden[STATUS_FIELD])
    by_colleague = {"website": "example.com", "expected_version": version}
    await world.service.partners.approve(partner_id, STAFF, **by_colleague)
    late = await staff.post(f"{page}/decline", **sent)
    assert (late.status_code, "A colleague decided" in late.text) == (409, True)
    assert forms_of(late.text, page)[f"{page}/review"].fields["note"] == "Mine."
    assert (await world.service.reviews.look(partner_id)).review.note is None


async def test_a_saved_review_keeps_what_a_decision_would_say(world, staff):
    """Its button is another one; a key press may have been meant for that."""
    partner_id = await world.service.partners.add("Books", "p@example.com", STAFF)
    page = f"/backoffice/partners/{partner_id}"
    form = forms_of((await staff.get(page)).text, page)[f"{page}/review"]
    sent = form.posted({**form.fields, "reason": "No imprint.", "note": "Mine."})
    for _ in range(2):  # loaded again, it is sent again
        answer = await staff.post(f"{page}/review", **sent)
        assert (answer.status_code, "Nothing has been decided yet" in answer.text) == (200, True)
    again = forms_of(answer.text, page)[f"{page}/decline"]
    assert again.fields["reason"] == "No imprint."
    assert (await staff.post(f"{page}/decline", **again.posted(again.fields))).status_code == 303
    known = await world.service.reviews.look(partner_id)
    assert (known.partner.status, known.review.note) == ("declined", "Mine.")


async def test_a_saved_review_says_what_a_colleague_decided(world, staff):
    """What a decision would say waits for none then; the form goes on about what is shown."""
    partners, sent = world.service.partners, {"reason": "No imprint.", "note": "Mine."}
    for decide, deed in ((partners.approve, "review"), (partners.decline, "approve")):
        partner_id = await partners.add("Books", "p@example.com", STAFF)
        page = f"/backoffice/partners/{partner_id}"
        form = forms_of((await staff.get(page)).text, page)[f"{page}/review"]
        await decide(partner_id, STAFF)
        answer = await staff.post(f"{page}/review", **form.posted({**form.fields, **sent}))
        names = ("saved", "is_decided", "saved_decided")
        told = [words.text(f"backoffice.partner.{name}") in answer.text for name in names]
        assert (answer.status_code, told) == (200, [False, False, True])
        again = forms_of(answer.text, page)[f"{page}/{deed}"]
        answer = await staff.post(f"{page}/{deed}", **again.posted(again.fields))
        assert answer.status_code == 303
        assert (await world.service.reviews.look(partner_id)).review.note == "Mine."


async def test_a_review_that_is_not_saved_is_not_said_to_be_undecided(world, staff):
    """Where a colleague decided alike meanwhile, and where a review alone was sent."""
    await world.service.staff.add("team@example.com", STAFF)
    for deed in ("approve", "review"):
        partner_id = await world.service.partners.add("Books", "p@example.com", STAFF)
        page = f"/backoffice/partners/{partner_id}"
        form = forms_of((await staff.get(page)).text, page)[f"{page}/{deed}"]
        first, second = [form.posted({**form.fields, "note": note}) for note in ("A.", "B.")]
        assert (await staff.post(f"{page}/approve", **first)).status_code == 303
        late = await staff.post(f"{page}/{deed}", **second)
        told = [one in late.text for one in ("has not been saved", "decided yet")]
        assert (late.status_code, told) == (409, [True, False])


async def test_a_form_of_an_earlier_release_takes_no_review_away(world, staff, monkeypatch):
    """One that decides had no review in it, and one of a review had its ticks by other names."""
    await world.service.staff.add("team@example.com", STAFF)
    partner_id = await world.service.partners.add("Books", "p@example.com", STAFF)
    page, reviews = f"/backoffice/partners/{partner_id}", world.service.reviews
    await reviews.save(partner_id, ["contact"], "Theirs.", 0, STAFF)
    old = await staff.post(f"{page}/review", version="1", note="Mine.", register="on")
    shown = forms_of(old.text, page)[f"{page}/review"].fields
    assert (old.status_code, shown["note"], "check_register" in shown) == (409, "Mine.", True)
    with monkeypatch.context() as patch:
        patch.setattr("service.people.sessions.FRESH", timedelta())
        asked = await staff.post(f"{page}/approve", version="1", website="example.com")
        assert asked.headers["location"].startswith("/proof")
    fault = await staff.post(f"{page}/approve", version="1", website="not a website")
    for answer in (fault, await staff.get(page)):
        form = forms_of(answer.text, page)[f"{page}/approve"]
        assert (form.fields["note"], form.hidden[REVIEW_FIELD]) == ("Theirs.", "1")
        assert "check_contact" in form.fields
    sent = form.posted({**form.fields, "website": "example.com"})
    assert (await staff.post(f"{page}/approve", **sent)).status_code == 303
    known = await reviews.look(partner_id)
    found = (known.partner.status, known.review.note, list(known.review.checks))
    assert found == ("approved", "Theirs.", ["contact"])


async def test_an_earlier_release_takes_no_review_of_this_one(world, staff):
    """It would read the version of the status as the review's, and the website as a tick of it."""
    partner_id = await world.service.partners.add("Books", "p@example.com", STAFF)
    page = f"/backoffice/partners/{partner_id}"
    form = forms_of((await staff.get(page)).text, page)[f"{page}/approve"]
    assert VERSION_FIELD not in form.hidden


async def test_an_earlier_release_s_review_comes_back_about_the_status_as_it_is(world, staff):
    """Its version is the review's: taken for the status, a decision with it came too late."""
    await world.service.staff.add("team@example.com", STAFF)
    partner_id = await world.service.partners.add("Books", "p@example.com", STAFF)
    page = f"/backoffice/partners/{partner_id}"
    late = await staff.post(f"{page}/review", version="0", note="Old.", register="on")
    assert late.status_code == 409
    form = forms_of(late.text, page)[f"{page}/approve"]
    answer = await staff.post(f"{page}/approve", **form.posted(form.fields))
    assert answer.status_code == 303
    known = await world.service.reviews.look(partner_id)
    found = (known.partner.status, known.review.note, list(known.review.checks))
    assert found == ("approved", "Old.", ["register"])


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


async def test_a_review_is_shown_to_the_team_alone(world, staff):
    """Who looked at what, the note and who decided; on no page of the partner's own console."""
    applicant = await Visitor(world).sign_in("dev@example.com")
    told = {"company": "Books", "contact_name": "Dev", "website": "", "use": "Claims.\nOf books."}
    faulty = await applicant.post("/console/apply", company_number="0" * 61, **told)
    assert (faulty.status_code, 'id="company_number-fault"' in faulty.text) == (400, True)
    applied = await applicant.post("/console/apply", company_number="canary-123", **told)
    partner_id = applied.headers["location"].rpartition("/")[2]
    page = f"/backoffice/partners/{partner_id}"
    own = (await applicant.get(f"/console/{partner_id}")).text
    assert re.search(r'class="said">Claims\.\r?\nOf books\.<', own)  # as they wrote it
    assert "canary-123" in (await staff.get(page)).text
    sent = {"check_website": "on", "check_register": "on", "note": "A canary-note."}
    saved = await staff.post(f"{page}/review", review_version="0", **sent)
    assert saved.status_code == 303
    again = await staff.post(f"{page}/review", review_version="0", note="Mine.")
    assert (again.status_code, "Mine." in again.text, "canary-note" in again.text) == (
        409,
        *[True] * 2,
    )
    for note in ("n" * 501, "no\u202eton"):
        answer = await staff.post(f"{page}/review", review_version="1", note=note)
        assert (answer.status_code, 'id="note-fault"' in answer.text) == (400, True)
    await staff.post(f"{page}/approve", version="1", website="")
    shown = (await staff.get(page)).text
    assert shown.count(" checked>") == 2
    assert shown.count("team@example.com, <time") == 4  # two checks, the note and the approval
    for path in ("", "/settings", "/keys", "/team"):
        answer = await applicant.get(f"/console/{partner_id}{path}")
        assert (answer.status_code, "canary-note" in answer.text) == (200, False)


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


async def test_only_connectable_parties_are_connected(world, ids, staff):
    """No pending partner, unfinished onboarding or sandbox entity."""
    pending = await world.service.partners.add("Books", "p@example.com", STAFF)
    other = await world.partner()
    body = {"partner_user_id": "u", "company_name": "New", "user_email": "new@example.com"}
    await other.call("POST", "/onboardings", json=body)
    async with world.service.modes["live"].ledger.database.writes.connection() as connection:
        opened = await connection.fetchval(OPEN)
    sandbox = await world.service.sandbox.ensure(ids["partner"])
    for entity_id, partner_id, code in (
        (ids["entity"], pending, "partner_state"),
        (ids["entity"], "ptn_none", "partner_not_found"),
        (opened, ids["partner"], "entity_state"),
        (sandbox.unconnected_entity_id, ids["partner"], "Nothing has this ID"),
    ):
        path = f"/backoffice/entities/{entity_id}/connect"
        answer = await staff.post(path, partner_id=partner_id)
        assert answer.status_code in {404, 409}, code
        assert code in answer.text


async def test_the_confirmation_shows_an_earlier_connection(world, ids, staff):
    """It says who ended it and when, or that it still holds."""
    path = f"/backoffice/entities/{ids['entity']}/connect?partner_id={ids['partner']}"
    live = world.service.modes["live"]
    assert "has been connected to this business since" in (await staff.get(path)).text
    owner = await Visitor(world).sign_in("owner@example.com")
    await owner.confirm(f"/account/{ids['entity']}/{ids['partner']}/disconnect")
    access = await live.connection_list.access(ids["partner"], ids["entity"])
    ended = (await staff.get(path)).text
    assert "The customer disconnected" in ended
    assert moment(access.disconnected_at) in ended
    await live.connections.connect_by_staff(ids["entity"], ids["partner"], STAFF)
    await live.connections.disconnect(ids["entity"], ids["partner"], STAFF)
    ended = (await staff.get(path)).text
    assert "The customer disconnected" not in ended
    assert f"by <code>{STAFF.actor}</code>" in ended


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


async def test_connecting_twice_is_one_event(world, ids, staff):
    """A form that is sent twice shows the id again."""
    partner = await world.partner()
    path = f"/backoffice/entities/{ids['entity']}"
    version = await staff.version(f"{path}/connect?partner_id={partner.partner_id}")
    for _ in range(2):
        form = {"partner_id": partner.partner_id, "version": version}
        answer = await staff.post(f"{path}/connect", **form)
        assert answer.headers["location"] == f"{path}/handed/{partner.partner_id}"
    live = world.service.modes["live"].ledger
    async with live.transaction() as transaction:
        stream = connection_stream("live", partner.partner_id, ids["entity"])
        assert len(await transaction.read(stream)) == 1


async def test_forms_about_an_earlier_state_of_a_connection_change_nothing(world, ids, staff):
    """The customer disconnected, or connected again, after the page was made."""
    live = world.service.modes["live"]
    entity_id, partner_id = ids["entity"], ids["partner"]
    path = f"/backoffice/entities/{entity_id}"
    ending = await staff.version(f"{path}/disconnect/{partner_id}")
    await live.connections.disconnect(entity_id, partner_id, STAFF)
    connecting = await staff.version(f"{path}/connect?partner_id={partner_id}")
    await live.connections.connect_by_staff(entity_id, partner_id, STAFF)
    answer = await staff.post(f"{path}/disconnect/{partner_id}", version=ending)
    assert (answer.status_code, "form_outdated" in answer.text) == (409, True)
    assert (await live.connection_list.access(partner_id, entity_id)).connected
    await live.connections.disconnect(entity_id, partner_id, STAFF)
    answer = await staff.post(f"{path}/connect", partner_id=partner_id, version=connecting)
    assert (answer.status_code, "form_outdated" in answer.text) == (409, True)
    assert not (await live.connection_list.access(partner_id, entity_id)).connected


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
