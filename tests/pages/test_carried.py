"""What was entered in a form whose sender has to sign in, or prove who they are: it is kept."""

import zlib
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import product
from random import Random
from string import ascii_letters
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from httpx import Response

from service.ledger.encryption import encrypt
from service.pages.carried import (
    COOKIE_CHARACTERS_MAX,
    FORM_COOKIE,
    KEPT,
    Carried,
    filled,
    form_key,
)
from service.pages.site_map import RoutedPage
from service.pages.visit import COOKIE, KNOWN_COOKIE, SEEN_FIELD, STATUS_FIELD, VERSION_FIELD
from service.pages.words import text
from service.partners.wire import WORDS_CHARACTERS_MAX
from service.people.ceremonies import CREDENTIAL
from service.people.marks import mark_text
from tests.pages.customers import business, link_of, onboarding
from tests.pages.forms import Form, forms_of
from tests.pages.people import People
from tests.pages.visitor import Visitor
from tests.tables import every_row
from tests.world import STAFF

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONSOLE, BACKOFFICE = "/console/{partner_id:str}", "/backoffice"
SECOND = "second@example.com"
ENDPOINT = "https://other.example.com/hooks"
HEAD_BYTES_MAX, STATUS_LINE = 4_096, "HTTP/1.1 303 See Other\r\n"
PATH_CHARACTERS_MAX = 512

FORMS: dict[str, dict[str, str]] = {
    "/account/mails": {"stage_mails": "on"},
    "/console/apply": {"company": "C", "contact_name": "N", "website": "", "use": "U"},
    f"{CONSOLE}/keys": {"name": "Billing server", "mode": "live"},
    f"{CONSOLE}/keys/{{key_id:str}}/roll": {"overlap": "7d"},
    f"{CONSOLE}/settings": {"return_url": "https://example.com/back", "return_link": "on"},
    f"{CONSOLE}/team": {"email": "new@example.com"},
    f"{CONSOLE}/webhooks": {"url": ENDPOINT, "mode": "live", "claim.created": "on"},
    f"{CONSOLE}/webhooks/{{endpoint_id:str}}": {"url": ENDPOINT, "claim.created": "on"},
    f"{CONSOLE}/webhooks/{{endpoint_id:str}}/replay": {"position": "7"},
    BACKOFFICE: {"sought": "ptn_none"},
    f"{BACKOFFICE}/claims/{{claim_id:str}}/stage": {"stage": "none"},
    f"{BACKOFFICE}/partners/{{partner_id:str}}/approve": {"website": "www.other.example"},
    f"{BACKOFFICE}/partners/{{partner_id:str}}/website": {"website": "www.other.example"},
    f"{BACKOFFICE}/partners/{{partner_id:str}}/decline": {"reason": ""},
    f"{BACKOFFICE}/partners/{{partner_id:str}}/review": {"note": "Fine.", "check_register": "on"},
}
"""The forms in which people enter something, by route; and what they accept, but for forms that
take no proof, of which nothing is to be done."""
BARE = {
    *("/account/sign-out", "/account/{entity_id:str}/{partner_id:str}/disconnect"),
    *(f"{BACKOFFICE}/claims/{{claim_id:str}}/personal", "/security/sessions/end"),
    "/security/passkeys/{passkey_id:str}/remove",
    f"{BACKOFFICE}/entities/{{entity_id:str}}/disconnect/{{partner_id:str}}",
    f"{BACKOFFICE}/partners/{{partner_id:str}}/revoke",
    *(f"{BACKOFFICE}/people/{{person_id:str}}/{act}" for act in ("recover", "sign-out")),
    *(f"{CONSOLE}{path}" for path in ("/keys/{key_id:str}/revoke", "/sandbox/reset", "/tutorial")),
    f"{CONSOLE}/team/{{member_id:str}}/remove",
    *(
        f"{CONSOLE}/webhooks/{{endpoint_id:str}}/{act}"
        for act in ("disable", "remove", "rotate", "secret", "test")
    ),
}
"""The forms without a field to fill in."""
PROVED = {
    *(f"{CONSOLE}{path}" for path in ("/keys", "/keys/{key_id:str}/roll", "/settings", "/team")),
    *(f"{CONSOLE}/webhooks{path}" for path in ("", "/{endpoint_id:str}")),
    *(f"{CONSOLE}/webhooks/{{endpoint_id:str}}/replay",),
    *(f"{BACKOFFICE}/partners/{{partner_id:str}}/{act}" for act in ("approve", "website")),
}
"""Those of FORMS that take a fresh proof."""
LOOKED_AT = {VERSION_FIELD, STATUS_FIELD, SEEN_FIELD}
"""Hidden fields that say what a form's sender looked at."""
OF_NOTHING_SHARED = {
    "/account/mails",
    "/console/apply",
    *(f"{CONSOLE}{path}" for path in ("/keys", "/keys/{key_id:str}/roll", "/team", "/webhooks")),
    f"{CONSOLE}/webhooks/{{endpoint_id:str}}/replay",
    BACKOFFICE,
}
"""Those that can undo nothing that a colleague did: they add something, begin something, look for
something, or are about their sender alone."""


class Place(NamedTuple):
    """A form's route, its path, and the path of the page on which it stands."""

    route: str
    email: str
    path: str
    page: str


class Entering(People):
    """Everybody, and the forms that they fill in."""

    async def prepare(self) -> None:
        """Let somebody have applied, too."""
        await super().prepare()
        told = {"contact_name": "N", "use": "U", "website": "www.famous-bank.example"}
        self.pending = await self.world.service.partners.apply(
            company="Books", company_number=None, email="p@example.com", cause=STAFF, **told
        )

    def place(self, page: RoutedPage) -> Place:
        """Return where a form is."""
        who = {"signed-in": "customer", "approved": "member"}.get(page.who, page.who)
        path = self.url(page)
        if page.path.endswith(("/approve", "/decline")):
            path = path.replace(self.values["partner_id"], self.pending)
        return Place(page.path, f"{who}@example.com", path, self.site_map.page_of_form(path))

    @property
    def places(self) -> list[Place]:
        """Every form of people who are signed in."""
        return [self.place(one) for one in self.posts if one.who not in {"public", "token"}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def people(shared) -> Entering:
    """Return everybody involved."""
    everybody = Entering(shared)
    await everybody.prepare()
    return everybody


async def form_at(visitor: Visitor, place: Place) -> Form:
    """Open the page of a form."""
    page = (await visitor.get(place.page)).text
    return forms_of(page, place.page).get(place.path, Form(place.path))


async def said_at(visitor: Visitor, answer: Response) -> tuple[bool, bool]:
    """Return whether the page to sign in, to which a form led, calls it kept, and too long."""
    shown = (await visitor.get(answer.headers["location"])).text
    return "is kept for 30 minutes" in shown, "is too long" in shown


async def stranger(visitor: Visitor) -> None:
    """Leave nothing of a session in the browser."""
    visitor.client.cookies.delete(COOKIE)


async def ended(visitor: Visitor) -> None:
    """Let somebody else have been signed in since, whose session's cookie is still there."""
    token = visitor.csrf
    await visitor.sign_in(SECOND)
    await visitor.world.service.sessions.end(visitor.session or "")
    visitor.csrf = token


async def left(visitor: Visitor) -> None:
    """Let somebody else have been signed in since, who left only their mark."""
    token = visitor.csrf
    await visitor.sign_in(SECOND)
    await marked(visitor)
    await visitor.post("/sign-out")
    visitor.csrf = token


async def marked(visitor: Visitor) -> None:
    """Leave the mark of who is signed in."""
    keys, address_hash = await visitor.world.service.secrets.get(), visitor.person.address_hash
    mark = mark_text(keys, address_hash, visitor.world.service.clock())
    visitor.client.cookies.set(KNOWN_COOKIE, mark)


async def test_what_was_entered_survives_signing_in(people):
    """In every form that somebody fills in: it is shown as it was sent, once, and nothing is done.

    Another person sees nothing of it, whoever has used the browser by then.
    """
    found = set[str]()
    with every_row() as row:
        for place, gone in product(people.places, (stranger, ended, left)):
            with row(place.route, gone.__name__):
                visitor = await Visitor(people.world).sign_in(place.email)
                form = await form_at(visitor, place)
                if not form.fields:
                    continue
                found.add(place.route)
                changed = form.changed()
                await gone(visitor)
                answer = await visitor.post(place.path, **form.posted(changed))
                assert answer.headers["location"].startswith("/sign-in?next=")
                assert await said_at(visitor, answer) == (True, False)
                await visitor.sign_in(SECOND)
                assert (await form_at(visitor, place)).fields in ({}, form.fields)
                await visitor.sign_in(place.email)
                assert (await form_at(visitor, place)).fields == changed
                assert (await form_at(visitor, place)).fields == form.fields
    assert found == set(FORMS)


async def test_what_was_entered_survives_a_proof(people, monkeypatch):
    """Where a form takes one. Only its sender sees it, in the browser that sent it."""
    asked = set[str]()
    with every_row() as row:
        for place in people.places:
            if place.route not in FORMS:
                continue
            with row(place.route):
                visitor = await Visitor(people.world).sign_in(place.email)
                form = await form_at(visitor, place)
                sent = dict.fromkeys(form.fields, "") | FORMS[place.route]
                with monkeypatch.context() as stale:
                    stale.setattr("service.people.sessions.FRESH", timedelta())
                    answer = await visitor.post(place.path, **form.posted(sent))
                if "/proof?next=" not in answer.headers.get("location", ""):
                    continue
                asked.add(place.route)
                assert "csrf" not in "".join(answer.headers.get_list("set-cookie"))
                await visitor.sign_in(SECOND)
                assert (await form_at(visitor, place)).fields in ({}, form.fields)
                await visitor.sign_in(place.email)
                assert (await form_at(visitor, place)).fields == sent
    assert asked == PROVED


async def test_what_was_sent_from_another_tab_waits_no_longer(people):
    """What its page would say of it, that nothing has been sent, is not true any more."""
    place, other = (
        next(one for one in people.places if one.route == f"{CONSOLE}/{path}")
        for path in ("team", "webhooks")
    )
    visitor = await Visitor(people.world).sign_in(place.email)
    form = await form_at(visitor, place)
    await stranger(visitor)
    await visitor.post(place.path, **FORMS[place.route])
    await visitor.sign_in(place.email)
    assert (await visitor.post(other.path, url="none")).status_code == 400
    assert (await visitor.post(place.path, email="none")).status_code == 400
    assert visitor.client.cookies.get(FORM_COOKIE)
    assert (await visitor.post(place.path, **FORMS[place.route])).status_code == 303
    assert not visitor.client.cookies.get(FORM_COOKIE)
    assert (await form_at(visitor, place)).fields == form.fields


async def test_what_was_entered_survives_somebody_else_signing_in(people):
    """Also where the page is not theirs: they are told so, and the form waits for its sender."""
    with every_row() as row:
        for place in people.places:
            if place.route not in FORMS or not place.route.startswith((CONSOLE, BACKOFFICE)):
                continue
            with row(place.route):
                visitor = await Visitor(people.world).sign_in(place.email)
                form = await form_at(visitor, place)
                changed, token = form.changed(), visitor.csrf
                await visitor.sign_in(SECOND)
                visitor.csrf = token
                assert (await visitor.post(place.path, **form.posted(changed))).status_code == 409
                await visitor.sign_in(SECOND)
                assert (await form_at(visitor, place)).fields in ({}, form.fields)
                await visitor.sign_in(place.email)
                assert (await form_at(visitor, place)).fields == changed


async def test_a_press_that_had_to_wait_is_said_to_have_done_nothing(people):
    """Of every form without a field to fill in, such as a confirmation: once, and in its place.

    The page to sign in says of none that what was entered is kept.
    """
    found = set[str]()
    with every_row() as row:
        for place in people.places:
            with row(place.route):
                visitor = await Visitor(people.world).sign_in(place.email)
                form = await form_at(visitor, place)
                if form.fields or not form.hidden or CREDENTIAL in form.hidden:
                    continue
                found.add(place.route)
                await stranger(visitor)
                answer = await visitor.post(place.path, **form.posted({}))
                assert await said_at(visitor, answer) == (False, False)
                await visitor.sign_in(place.email)
                first, again = [(await visitor.get(place.page)).text for _ in range(2)]
                assert [text("form.pressed") in page for page in (first, again)] == [True, False]
                assert text("form.carried") not in first
    assert found == BARE


async def test_a_press_that_had_to_wait_leaves_what_was_entered(people):
    """Where it led to the page to sign in, too, that page says that the other form is kept."""
    place = next(one for one in people.places if one.route == f"{CONSOLE}/team")
    visitor = await Visitor(people.world).sign_in(place.email)
    await stranger(visitor)
    await visitor.post(place.path, **FORMS[place.route])
    assert await said_at(visitor, await visitor.post("/account/sign-out")) == (True, False)
    await visitor.sign_in(place.email)
    assert (await form_at(visitor, place)).fields == FORMS[place.route]


async def test_a_press_and_what_was_entered_wait_side_by_side(people, monkeypatch):
    """Whichever came first, also where what was entered is somebody else's: neither is lost."""
    routes = (f"{CONSOLE}/team", f"{CONSOLE}/webhooks/{{endpoint_id:str}}/rotate")
    places = {one.route: one for one in people.places}
    entering, pressing = (places[route] for route in routes)
    with every_row() as row:
        for order, whose in product(((0, 1), (1, 0)), (entering.email, SECOND)):
            with row(order, whose):
                visitor = await Visitor(people.world).sign_in(entering.email)
                sent = [(entering, FORMS[entering.route])]
                sent.append((pressing, (await form_at(visitor, pressing)).posted({})))
                with monkeypatch.context() as stale:
                    stale.setattr("service.people.sessions.FRESH", timedelta())
                    for place, fields in [sent[one] for one in order]:
                        who = whose if place is entering else pressing.email
                        await visitor.sign_in(who)
                        assert (await visitor.post(place.path, **fields)).status_code == 303
                await visitor.sign_in(pressing.email)
                first, again = [(await visitor.get(pressing.page)).text for _ in range(2)]
                assert [text("form.pressed") in page for page in (first, again)] == [True, False]
                assert visitor.client.cookies.get(FORM_COOKIE)
                if whose == entering.email:
                    assert (await form_at(visitor, entering)).fields == FORMS[entering.route]
                    assert not visitor.client.cookies.get(FORM_COOKIE)


async def test_a_decision_that_waited_is_shown_where_a_colleague_has_decided(people):
    """Its buttons are gone, but the review that it saves is still a form of the page."""
    await people.world.service.staff.add("team@example.com", STAFF)
    for deed, decide in product(
        ("approve", "decline"),
        (people.world.service.partners.approve, people.world.service.partners.decline),
    ):
        pending = await people.world.service.partners.add("Books", "r@example.com", STAFF)
        page = f"{BACKOFFICE}/partners/{pending}"
        visitor = await Visitor(people.world).sign_in("team@example.com")
        form = forms_of((await visitor.get(page)).text, page)[f"{page}/{deed}"]
        await stranger(visitor)
        sent = form.posted({**form.fields, "reason": "Mine.", "note": "N."})
        await visitor.post(f"{page}/{deed}", **sent)
        await decide(pending, STAFF)
        await visitor.sign_in("team@example.com")
        shown = (await visitor.get(page)).text
        assert text("form.carried") in shown
        assert forms_of(shown, page)[f"{page}/review"].fields["note"] == "N."
        assert not visitor.client.cookies.get(FORM_COOKIE)


async def test_no_link_says_that_a_form_was_lost(people):
    """Nor does a form of nobody, in which there is nothing to enter, that one is kept."""
    visitor = Visitor(people.world)
    for path in ("/sign-in?form=lost", "/sign-in?next=/console&x=form=lost"):
        assert 'class="notice' not in (await visitor.get(path)).text
    for path in ("/account/sign-out", "/security/sessions/end", "/security/passkeys/x/remove"):
        assert await said_at(visitor, await visitor.post(path)) == (False, False)


async def test_an_answer_that_had_to_wait_is_said_to_have_done_nothing(people):
    """Of a customer with one business, who has nothing to choose."""
    path = await link_of(await people.world.partner())
    await business(people.world, email="one@example.com")
    visitor, place = (
        await Visitor(people.world).sign_in("one@example.com"),
        Place("", "", path, path),
    )
    form = await form_at(visitor, place)
    await stranger(visitor)
    await visitor.post(path, **form.posted({"answer": "decline"}))
    await visitor.sign_in("one@example.com")
    assert text("form.pressed") in (await visitor.get(path)).text
    assert (await form_at(visitor, place)).posted({}) == form.posted({})


def colleagues(people: Entering) -> dict[str, tuple[dict[str, str], Callable[[], Awaitable[Any]]]]:
    """Return what is sent in each form that is about a version, and what a colleague does first.

    Declining is no row: its form is gone as soon as anything is decided.
    """
    service, ids = people.world.service, people.values
    partners, live = service.partners, service.modes["live"]
    partner_id, entity_id, claim_id = ids["partner_id"], ids["entity_id"], ids["claim_id"]
    endpoint, moved = (partner_id, ids["endpoint_id"]), "https://moved.example.com/hooks"
    webhook = f"{CONSOLE}/webhooks/{{endpoint_id:str}}"

    async def connect_anew() -> None:
        await live.connections.disconnect(entity_id, partner_id, STAFF)
        await live.connections.connect_by_staff(entity_id, partner_id, STAFF)

    async def decline() -> None:
        await partners.decline(people.pending, STAFF, "Fraud.")

    async def save() -> None:
        version = (await service.reviews.look(partner_id)).review.version
        await service.reviews.save(partner_id, [], "Fraud.", version, STAFF)

    return {
        "/account/{entity_id:str}/{partner_id:str}/disconnect": ({}, connect_anew),
        f"{CONSOLE}/settings": (
            {"return_url": ""},
            lambda: partners.change_settings(partner_id, STAFF, return_link=True),
        ),
        webhook: (FORMS[webhook], lambda: service.endpoints.change(*endpoint, moved, [], STAFF)),
        f"{BACKOFFICE}/claims/{{claim_id:str}}/stage": (
            {"stage": "settled"},
            lambda: live.claims.move(claim_id, "letter_before_action", STAFF),
        ),
        f"{BACKOFFICE}/entities/{{entity_id:str}}/disconnect/{{partner_id:str}}": (
            {},
            connect_anew,
        ),
        f"{BACKOFFICE}/partners/{{partner_id:str}}/approve": ({"website": ""}, decline),
        f"{BACKOFFICE}/partners/{{partner_id:str}}/website": (
            {"website": "example.com"},
            lambda: partners.verify_website(partner_id, STAFF, "example.net"),
        ),
        f"{BACKOFFICE}/partners/{{partner_id:str}}/review": ({"note": "Mine."}, save),
    }


async def test_what_a_colleague_did_meanwhile_is_not_overwritten(people, monkeypatch):
    """A form that comes back is about what its sender looked at: sent again, it is refused."""
    pending = await people.world.service.partners.add("Books", "q@example.com", STAFF)
    monkeypatch.setattr(people, "pending", pending)
    rows, found = colleagues(people), set[str]()
    with every_row() as row:
        for place in people.places:
            with row(place.route):
                visitor = await Visitor(people.world).sign_in(place.email)
                form = await form_at(visitor, place)
                if not LOOKED_AT & set(form.hidden):
                    continue
                found.add(place.route)
                sent, change = rows[place.route]
                visitor.client.cookies.delete(COOKIE)
                await visitor.post(place.path, **form.posted(sent))
                await change()
                await visitor.sign_in(place.email)
                back, theirs = [await form_at(visitor, place) for _ in range(2)]
                assert theirs.posted({}) != form.posted({})
                answer = await visitor.post(place.path, **back.posted(back.fields))
                assert answer.status_code == 409
                assert await form_at(visitor, place) == theirs
    assert found == set(rows)


async def test_a_form_about_what_others_change_says_what_its_sender_looked_at(people):
    """Otherwise, it undoes in silence what a colleague did after its page was opened."""
    silent = set[str]()
    for place in people.places:
        if place.route in FORMS:
            form = await form_at(await Visitor(people.world).sign_in(place.email), place)
            if not LOOKED_AT & set(form.hidden):
                silent.add(place.route)
    assert silent == OF_NOTHING_SHARED


async def test_no_website_is_approved_that_nobody_entered(people, monkeypatch):
    """What the applicant says is no value of the form: not at first, and not after a proof."""
    await people.world.service.staff.add("team@example.com", STAFF)
    staff = await Visitor(people.world).sign_in("team@example.com")
    path = f"/backoffice/partners/{people.pending}"
    place = Place("", "", f"{path}/approve", path)
    assert "www.famous-bank.example" in (await staff.get(path)).text
    form = await form_at(staff, place)
    assert form.fields["website"] == ""
    monkeypatch.setattr("service.people.sessions.FRESH", timedelta())
    await staff.post(place.path, **form.posted(form.fields))
    shown = await staff.get(path)
    assert forms_of(shown.text, path)[place.path].fields["website"] == ""
    assert "Nothing has been sent yet." in shown.text


async def test_an_onboarding_waits_for_signing_in(people):
    """Its person's link was given to the partner, too, and somebody else has used the browser."""
    service, partner = people.world.service, await people.world.partner()
    path = await onboarding(people.world, partner)
    visitor = await Visitor(people.world).sign_in("new@example.com")
    place = Place("", "", path, path)
    form = await form_at(visitor, place)
    await service.partners.change_settings(partner.partner_id, STAFF, return_link=True)
    given = await onboarding(people.world, partner, "given@example.com")
    changed = form.changed()
    stranger = Visitor(people.world)
    await left(stranger)
    answer = await stranger.post(given, **form.posted(changed))
    assert answer.headers["location"] == f"/sign-in?next={given}"
    await stranger.sign_in(SECOND)
    assert (await form_at(stranger, Place("", "", given, given))).fields == {}
    await stranger.sign_in("given@example.com")
    assert (await form_at(stranger, Place("", "", given, given))).fields == changed


async def test_a_page_of_an_earlier_release_works_on(people):
    """Its forms have the session's token alone: they are taken, and wait for nobody."""
    visitor, path = await Visitor(people.world).sign_in("member@example.com"), "/console/apply"
    visitor.csrf = visitor.csrf.partition(".")[0]
    assert (await visitor.post("/security/sessions/end")).headers["location"] == "/security"
    await stranger(visitor)
    await visitor.post(path, company="C")
    await visitor.sign_in("member@example.com")
    assert set((await form_at(visitor, Place("", "", path, path))).fields.values()) == {""}


async def test_the_longest_form_waits_and_signing_out_ends_it(people):
    """In Latin letters of no pattern, under a head of 4 KiB, of which proxies take no more.

    What is larger is not kept. The page to sign in says which of both it is.
    """
    visitor, path, drawn = Visitor(people.world), "/console/apply", Random(7)  # noqa: S311 - no secret
    longest = {"company": 255, "contact_name": 255, "company_number": 60, "website": 253}
    longest |= {"use": WORDS_CHARACTERS_MAX}
    sent = {name: "".join(drawn.choices(ascii_letters, k=most)) for name, most in longest.items()}
    answer = await visitor.post(path, **sent)
    kept = len(visitor.client.cookies[FORM_COOKIE])
    head = sum(len(name) + len(value) + len(": \r\n") for name, value in answer.headers.raw)
    head += len(STATUS_LINE) + (COOKIE_CHARACTERS_MAX - kept) + (PATH_CHARACTERS_MAX - len(path))
    assert head < HEAD_BYTES_MAX
    await visitor.sign_in("long@example.com")
    assert (await form_at(visitor, Place("", "", path, path))).fields == sent
    assert FORM_COOKIE not in visitor.client.cookies
    stranger = Visitor(people.world)
    for use, is_kept in (
        ("Short.", True),
        ("".join(drawn.choices(ascii_letters, k=15_000)), False),
    ):
        answer = await stranger.post(path, use=use)
        assert answer.headers["location"] == f"/sign-in?next={path}"
        assert await said_at(stranger, answer) == (is_kept, not is_kept)
        assert (FORM_COOKIE in stranger.client.cookies) == is_kept
    assert await said_at(stranger, answer) == (False, False)
    await stranger.post(path, use="Short.")
    await stranger.post("/sign-out")
    assert FORM_COOKIE not in stranger.client.cookies


async def test_what_is_no_form_of_ours_fills_nothing(people):
    """Whatever is planted in the cookie, or put there by a release that keeps forms otherwise."""
    key = form_key(await people.world.service.secrets.get())
    other = zlib.compress(b'{"path":"/console/apply","sender":"ab","fields":{"use":"U"},"mark":""}')
    sealed = [
        urlsafe_b64encode(encrypt(key, other, bound_to)).decode()
        for bound_to in (b"form", b"form path owner fields")
    ]
    texts = ("", "x", "AAAA", "A" * COOKIE_CHARACTERS_MAX, "é", *sealed)
    for planted in (*texts, *(f"{KEPT}.{one}" for one in texts)):
        visitor = await Visitor(people.world).sign_in("planted@example.com")
        cookies = f"{COOKIE}={visitor.session}; {FORM_COOKIE}={planted}"
        visitor.client.cookies.clear()
        answer = await visitor.get("/console/apply", headers={"Cookie": cookies.encode()})
        assert answer.status_code == 200
        fields: Any = forms_of(answer.text, "/console/apply")["/console/apply"].fields
        assert set(fields.values()) == {""}


async def test_of_forms_to_one_place_the_one_that_was_sent_is_filled():
    """By the field that names a business, of several as of one: none is filled for another."""
    one = '<form method="post" action="/mails"><input type="hidden" name="id" value="{0}">'
    one += '<input type="checkbox" name="told"><button>Save {0}</button></form>'
    page = one.format(1) + one.format(2)
    carried = Carried("/mails", "", {"id": "2", "told": "on"})
    shown = filled(page, carried, "/", "", "")
    assert shown == page[::-1].replace('"dlot"=eman', 'dekcehc "dlot"=eman', 1)[::-1]
    assert filled(one.format(1), carried, "/", "", "") is None
    assert filled(page, Carried("/other", "", {}), "/", "", "") is None
