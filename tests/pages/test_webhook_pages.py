"""Webhooks in the console: added, tested, paused, replayed; the secret behind a fresh proof."""

import html
import re
from collections import Counter
from datetime import timedelta

import pytest

from projections.partner_events.projector import TYPES
from service.core.clock import system_clock
from service.http.rate_limit.limiter import PAGES_PER_MINUTE, POSTS_PER_MINUTE
from service.ledger.sql import Sql
from service.pages.formats import moment
from service.webhooks.decisions import ENDPOINTS_MAX
from service.webhooks.queues import TESTS_MAX
from service.webhooks.signing import signing_keys
from tests.pages.visitor import Visitor
from tests.patience import eventually
from tests.sessions import moved_in_time
from tests.world import STAFF

pytestmark = pytest.mark.followed

DEVELOPER = "developer@example.com"
URL = "https://example.com/hooks"
ALL = dict.fromkeys(TYPES.values(), "on")
ONE = {"claim.created": "on"}
_LOGGED = Sql(
    "logged",
    "A delivery that was made.",
    "insert into ledger.webhook_log values"
    " ($1, $2, 107, 'clm_1', 'claim.created', 2, 204, 12, 'HTTP 500')",
)
_ASIDE = Sql(
    "aside",
    "Events of a claim that were set aside, and of a connection.",
    "insert into ledger.webhook_deliveries"
    " select $1, position, 'connection ' || position / 2, 'claim.created', $2, 17,"
    " 'infinity', 'HTTP 422' from generate_series(104, 107) as position",
)
_HAPPENED = Sql(
    "happened",
    "Events of a partner: of a connection that nothing brought, and of a claim.",
    "insert into ledger.partner_events (stream_id, position, partner_id, type, at, claim_id)"
    " select gen_random_uuid(), nr, $1, case when nr < 106 then 'entity.connected' else"
    " 'claim.created' end, $2, case when nr >= 106 then 'clm_<' || nr || '>' end"
    " from generate_series(104, 107) as nr",
)

_RESTS = Sql(
    "rests",
    "An endpoint that rests until a moment; none where its queue is not there yet.",
    "update ledger.webhook_queues set position = 900, waits_until = $2 where endpoint_id = $1"
    " returning 1",
)
_WAIT = Sql(
    "wait",
    "Deliveries that were due a while ago, of two claims, and some that were set aside.",
    "insert into ledger.webhook_deliveries"
    " select $1, nr, 'clm_' || nr % 2, 'claim.created', $2::timestamptz, 1, $2, 'HTTP 500'"
    " from generate_series(1, 60) as nr"
    " union all select $1, 60 + nr, 'aside_' || nr, 'claim.created', $2, 17, 'infinity', 'HTTP 422'"
    " from generate_series(1, 60) as nr",
)
_TAKEN = Sql(
    "taken",
    "All but one of the deliveries of an endpoint are made.",
    "delete from ledger.webhook_deliveries where endpoint_id = $1 and position > 1",
)
_FOLLOWS = Sql(
    "follows",
    "An event of a partner that is not queued yet.",
    "insert into ledger.partner_events (stream_id, position, partner_id, type, at)"
    " values (gen_random_uuid(), 901, $1, 'claim.created', $2)",
)


@pytest.fixture
async def developer(world):
    """Return a member of a partner's team, signed in, and the path of its webhooks."""
    partner = await world.partner()
    await world.service.partners.add_member(partner.partner_id, DEVELOPER, STAFF)
    visitor = await Visitor(world).sign_in(DEVELOPER)
    return visitor, partner.partner_id, f"/console/{partner.partner_id}/webhooks"


def text_of(page):
    """Return what a page says."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page)))


async def shown(visitor, path):
    """Return what the page at a path says."""
    answer = await visitor.get(path)
    assert answer.status_code == 200, answer.text
    return text_of(answer.text)


def ticks(page):
    """Return the events that a page's form has ticked."""
    return re.findall(r'name="([a-z._]+)" checked', page)


async def added(visitor, path, url=URL, mode="test", types=ALL):
    """Send the form of a new endpoint; return the answer."""
    page = (await visitor.get(path)).text
    drawn = {
        field: re.search(rf'name="{field}" value="([^"]*)"', page)[1]
        for field in ("endpoint_id", "proof")
    }
    return await visitor.post(path, url=url, mode=mode, **drawn, **types), drawn


async def save(visitor, path, **fields):
    """Open the page of an endpoint, and save its form with these."""
    return await visitor.post(path, version=await visitor.version(path), **fields)


async def test_an_endpoint_is_added_once_and_shown(world, developer):
    """A form that is sent twice adds one; a URL that webhooks may not go to comes back."""
    visitor, partner_id, path = developer
    refused, _ = await added(visitor, path, "http://10.0.0.1/<x>")
    assert refused.status_code == 400
    assert "expected https://" in html.unescape(refused.text)
    assert 'aria-invalid="true"' in refused.text
    answer, drawn = await added(visitor, path, types=ONE)
    again = await visitor.post(path, url=URL, mode="test", **drawn, **ALL)
    place = f"{path}/{drawn['endpoint_id']}?done=added"
    assert [one.headers["location"] for one in (answer, again)] == [place] * 2
    assert URL in await shown(visitor, path)
    assert "was added" in await shown(visitor, place)
    (row,) = await world.service.endpoint_list.of(partner_id)
    assert (row["mode"], row["types"]) == ("test", "claim.created")
    forged = await visitor.post(path, url=URL, mode="test", endpoint_id="whe_mine", proof="x")
    assert forged.status_code == 400


async def test_a_form_that_ticks_no_event_changes_nothing(world, developer):
    """It would get every event; the form comes back with none ticked, others as they are."""
    visitor, partner_id, path = developer
    refused, _ = await added(visitor, path, types={})
    assert refused.status_code == 400
    assert "Events: choose at least one" in text_of(refused.text)
    assert await world.service.endpoint_list.of(partner_id) == []
    _, drawn = await added(visitor, path, types=ONE)
    one = f"{path}/{drawn['endpoint_id']}"
    for form, ticked in (({"url": URL}, []), ({"url": "x"} | ALL, list(ALL))):
        answer = await visitor.post(one, **form)
        assert (answer.status_code, ticks(answer.text)) == (400, ticked)
    elsewhere = await visitor.post(f"{one}/replay", position="x")
    assert [ticks(page.text) for page in (elsewhere, await visitor.get(one))] == [list(ONE)] * 2
    (row,) = await world.service.endpoint_list.of(partner_id)
    assert (row["url"], row["types"]) == (URL, "claim.created")
    assert (await save(visitor, one, url=URL, **ALL)).status_code == 303
    assert ticks((await visitor.get(one)).text) == list(ALL)


async def test_a_limit_is_told_in_its_own_words(developer):
    """Which one it is, and what helps: several have the code `limit_reached`."""
    visitor, _, path = developer
    for _ in range(ENDPOINTS_MAX):
        answer, drawn = await added(visitor, path)
        assert answer.status_code == 303
    full, _ = await added(visitor, path)
    assert full.status_code == 409
    expected = f"There can be {ENDPOINTS_MAX} endpoints in each mode. Remove one first."
    assert expected in text_of(full.text)
    answers = [await visitor.post(f"{path}/{drawn['endpoint_id']}/test") for _ in range(9)]
    waiting = next(one for one in answers if one.status_code == 409)
    assert f"gets {TESTS_MAX} test events at a time" in text_of(waiting.text)


async def test_an_endpoint_is_changed_rotated_paused_and_removed(world, developer):
    """Each by its form; what was rotated shows both secrets for a day."""
    visitor, partner_id, path = developer
    _, drawn = await added(visitor, path)
    endpoint_id = drawn["endpoint_id"]
    one = f"{path}/{endpoint_id}"
    secrets = await world.service.secrets.get()
    first, second = (signing_keys(secrets, endpoint_id, nr) for nr in (1, 2))
    secret = html.unescape((await visitor.post(f"{one}/secret")).text)
    assert first.shown_secret in secret
    assert first.shown_public_key in secret
    assert first.shown_secret not in html.unescape((await visitor.get(one)).text)
    ends = "the previous one ends at once"
    assert ends not in await shown(visitor, one)
    for _ in range(2):
        assert (await visitor.post(f"{one}/rotate", secret_version="2")).status_code == 303
    assert ends in await shown(visitor, one)
    secret = html.unescape((await visitor.post(f"{one}/secret")).text)
    assert (first.shown_secret in secret, second.shown_secret in secret) == (True, True)
    changed = await save(visitor, one, url="https://other.example.com/", **ALL)
    assert changed.status_code == 303
    assert (await visitor.post(one, url="ftp://example.com")).status_code == 400
    await visitor.post(f"{one}/disable")
    assert "paused" in await shown(visitor, one)
    await visitor.post(f"{one}/enable")
    (row,) = await world.service.endpoint_list.of(partner_id)
    assert (row["url"], row["secret_version"], row["disabled"]) == (
        "https://other.example.com/",
        2,
        None,
    )
    assert "Remove this endpoint?" in await shown(visitor, f"{one}/remove")
    for _ in range(2):
        assert (await visitor.post(f"{one}/remove")).headers["location"] == path
    assert (await visitor.get(one)).status_code == 404


async def test_an_endpoint_that_a_colleague_changed_meanwhile_is_not_changed_back(world, developer):
    """What it is now is shown beside what was entered, which is saved when it is sent again."""
    first, partner_id, path = developer
    second = await Visitor(world).sign_in(DEVELOPER)
    _, drawn = await added(first, path)
    one, new = f"{path}/{drawn['endpoint_id']}", "https://new.example.com/hooks"
    earlier = await first.version(one)
    assert (await save(second, one, url=new, **ALL)).status_code == 303
    await first.post(f"{one}/disable")  # which changes nothing that the form is about
    faulty = await first.post(one, version=earlier, url=URL)
    assert (faulty.status_code, f'name="version" value="{earlier}"' in faulty.text) == (400, True)
    outdated = await first.post(one, version=earlier, url=URL, **ONE)
    assert (outdated.status_code, 'role="alert"' in outdated.text) == (409, True)
    assert f"The endpoint is now: URL {new} Events claim.created ," in text_of(outdated.text)
    assert (f'value="{URL}"' in outdated.text, ticks(outdated.text)) == (True, list(ONE))
    (row,) = await world.service.endpoint_list.of(partner_id)
    assert (row["url"], row["types"]) == (new, "")
    same = await first.post(one, version=earlier, url=new, **ALL)
    assert same.status_code == 303
    shown_then = re.search(r'name="version" value="(\d+)"', outdated.text)[1]
    again = await first.post(one, version=shown_then, url=URL, **ONE)
    assert again.status_code == 303
    (row,) = await world.service.endpoint_list.of(partner_id)
    assert (row["url"], row["types"]) == (URL, "claim.created")


async def test_live_mode_takes_a_fresh_proof(world, developer):
    """To add, move, pause, resume, replay or remove, and for its secret; no other's is seen."""
    visitor, partner_id, path = developer
    _, drawn = await added(visitor, path, mode="live")
    one = f"{path}/{drawn['endpoint_id']}"
    await moved_in_time(world.service, "sessions", "started_at", 11)
    for deed in ("", "/secret", "/rotate", "/replay", "/disable", "/enable", "/remove"):
        answer = await visitor.post(f"{one}{deed}", url=URL, secret_version="2")
        assert answer.headers["location"].startswith("/proof"), deed
    other = await world.partner()
    await world.service.partners.add_member(other.partner_id, "other@example.com", STAFF)
    stranger = await Visitor(world).sign_in("other@example.com")
    theirs = f"/console/{other.partner_id}/webhooks/{drawn['endpoint_id']}"
    for deed in ("secret", "rotate", "test", "replay", "release", "enable", "disable"):
        assert (await stranger.post(f"{theirs}/{deed}")).status_code == 404, deed
    assert len(await world.service.endpoint_list.of(partner_id)) == 1


async def test_a_test_event_a_replay_and_the_log(world, developer):
    """What waits is listed with its last error, and what was delivered with status and duration."""
    visitor, partner_id, path = developer
    _, drawn = await added(visitor, path, mode="live")
    endpoint_id = drawn["endpoint_id"]
    one = f"{path}/{endpoint_id}"
    database = world.service.modes["live"].ledger.database
    await database.writes.fetch(_HAPPENED, partner_id, system_clock())
    moved = "update ledger.webhook_queues set position = 12345 returning 1"
    await eventually(lambda: database.writes.fetch(Sql("moved", "A queue.", moved)))
    assert "Position 12345" in await shown(visitor, one)  # as the field takes it
    await database.writes.fetch(_LOGGED, endpoint_id, system_clock())
    assert (await visitor.post(f"{one}/test")).status_code == 303
    assert (await visitor.post(f"{one}/replay", position="3")).status_code == 303
    for wrong in ("10", "x", "", "4294967296", "9" * 11, "9" * 30, "-1"):
        refused = await visitor.post(f"{one}/replay", position=wrong)
        assert (refused.status_code, "From position" in text_of(refused.text)) == (400, True), wrong
    page = await shown(visitor, one)
    about = (f"endpoint.test {endpoint_id}", "clm_<107>")
    for text in (*about, "204", "12 ms", "HTTP 500", "Position 2"):
        assert text in page
    assert "clm_1" not in page  # the queue's own name of it
    for query in ("before=1.x", "before=x"):
        assert (await visitor.get(f"{one}?{query}")).status_code == 400


async def test_a_claim_that_was_set_aside_is_delivered_again(world, developer):
    """The list and the endpoint's page say so; whoever asks twice for it asks once."""
    visitor, partner_id, path = developer
    _, drawn = await added(visitor, path)
    one = f"{path}/{drawn['endpoint_id']}"
    database = world.service.modes["test"].ledger.database
    moved = Sql("moved", "A queue.", "update ledger.webhook_queues set position = 200 returning 1")
    await eventually(lambda: database.writes.fetch(moved))
    await database.writes.fetch(_HAPPENED, partner_id, system_clock())
    await database.writes.fetch(_ASIDE, drawn["endpoint_id"], system_clock())
    assert "set aside: 4" in await shown(visitor, path)
    page = await visitor.get(one)
    assert "connection 5" not in page.text  # the queue's own name
    nothing = "A business that no onboarding or link of yours connected"
    again = "HTTP 422 Deliver again"
    listed = rf"{nothing} 2 104 .* {again} Position 104 clm_<106> 2 106 .* {again} clm_<106> "
    assert re.search(listed, text_of(page.text))
    assert "Nothing is waiting." in text_of(page.text)
    positions = re.findall(r'name="first" value="(\d+)"', page.text)
    assert positions == ["104", "106"]
    for position, left in zip(positions * 2, (2, 0, 0, 0), strict=True):
        answer = await visitor.post(f"{one}/release", first=position)
        assert answer.headers["location"] == f"{one}?done=released"
        page = await shown(visitor, f"{one}?done=released")
        assert ("on their way again" in page, f"set aside: {left}" in page) == (True, left > 0)
    assert (await visitor.post(f"{one}/release", subject="clm_<106>")).status_code == 400


async def test_a_person_can_post_so_much_a_minute(world, developer):
    """Whatever they press, in whichever console; looking goes on, and so do the others."""
    visitor, partner_id, path = developer
    _, drawn = await added(visitor, path)
    one = f"{path}/{drawn['endpoint_id']}"
    posts = [await visitor.post(f"{one}/enable") for _ in range(POSTS_PER_MINUTE)]
    statuses = [answer.status_code for answer in posts]
    assert statuses == [303] * (POSTS_PER_MINUTE - 1) + [429]
    assert 0 < int(posts[-1].headers["retry-after"]) <= 60
    assert (await visitor.get(one)).status_code == 200
    await world.service.partners.add_member(partner_id, "second@example.com", STAFF)
    second = await Visitor(world).sign_in("second@example.com")
    assert (await second.post(f"{one}/disable")).status_code == 303


async def test_a_person_can_open_so_many_pages_a_minute(world):
    """Also pages that are not theirs; then forms and other people's pages go on."""
    visitor = await Visitor(world).sign_in("person@example.com")
    pages = ["/security", "/backoffice", "/console/ptn_unknown"]
    statuses = Counter(
        [(await visitor.get(pages[nr % 3])).status_code for nr in range(PAGES_PER_MINUTE)]
    )
    assert statuses == {200: PAGES_PER_MINUTE // 3, 403: PAGES_PER_MINUTE // 3 * 2}
    refused = [await visitor.get(page) for page in pages]
    assert [answer.status_code for answer in refused] == [429] * 3
    assert 0 < int(refused[0].headers["retry-after"]) <= 60
    assert "html" in refused[0].headers["content-type"]
    assert (await visitor.post("/sign-out")).status_code == 303
    second = await Visitor(world).sign_in("second@example.com")
    assert (await second.get("/security")).status_code == 200


async def test_events_that_are_not_queued_yet_are_told_of(world, developer):
    """All that is queued is listed, so there is no count to compare it with."""
    visitor, partner_id, path = developer
    _, drawn = await added(visitor, path)
    endpoint_id, database = drawn["endpoint_id"], world.service.modes["test"].ledger.database
    now = system_clock()
    rests_until = now + timedelta(hours=1)
    await eventually(lambda: database.writes.fetch(_RESTS, endpoint_id, rests_until))
    await database.writes.fetch(_WAIT, endpoint_id, now)
    await database.writes.fetch(_TAKEN, endpoint_id)
    await database.writes.fetch(_FOLLOWS, partner_id, now)
    page = await shown(visitor, f"{path}/{endpoint_id}")

    assert "More events are waiting, and are listed as soon as they are queued." in page
    assert "of more than" not in page


async def test_what_is_not_listed_is_told_and_so_is_what_is_waited_for(world, developer):
    """A rest, an event before it, or whoever paused it; never a moment that has passed."""
    visitor, partner_id, path = developer
    _, drawn = await added(visitor, path)
    endpoint_id, database = drawn["endpoint_id"], world.service.modes["test"].ledger.database
    one, now = f"{path}/{endpoint_id}", system_clock()
    rests_until = now.replace(microsecond=0) + timedelta(hours=1)
    await eventually(lambda: database.writes.fetch(_RESTS, endpoint_id, rests_until))
    await database.writes.fetch(_WAIT, endpoint_id, now - timedelta(hours=1))
    assert re.search(r"set aside: 60 60 never", await shown(visitor, path))
    page = await shown(visitor, one)
    assert "The first 50 of 60 are listed. Set aside" in page
    assert "The first 50 are listed. Delivered" in page
    until = text_of(moment(rests_until, "seconds"))
    assert (page.count(until), page.count("after the one before it")) == (1 + 2, 48)
    await database.writes.fetch(_FOLLOWS, partner_id, now)
    assert "60 more than 60 never" in await shown(visitor, path)
    assert "The first 50 of more than 60 are listed." in await shown(visitor, one)
    await save(visitor, one, url=URL, **{"entity.connected": "on"})
    assert "more than" not in await shown(visitor, path)
    await visitor.post(f"{one}/disable")
    page = await shown(visitor, one)
    assert (page.count("once you resume it"), until in page) == (50, False)
    assert "Next attempt after" not in page
