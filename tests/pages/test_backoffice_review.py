"""Decisions on a partner, its website and the saved review, without a browser."""

import re
from datetime import timedelta

from service.pages import words
from service.pages.visit import REVIEW_FIELD, STATUS_FIELD, VERSION_FIELD
from tests.pages.forms import forms_of
from tests.pages.visitor import Visitor
from tests.tables import every_row
from tests.world import STAFF


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
