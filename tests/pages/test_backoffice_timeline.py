"""Long timelines: page weight, shortened values, and paging to the oldest event."""

import html
import re

import psycopg
import pytest
import pytest_asyncio

from projections.activity import reader
from projections.activity.reader import ActivityReader
from service.core.invisible_characters import visible
from service.evidence.replay.history import NUMBERED
from service.facts.claims import ClaimStageChanged, claim_stream
from service.ledger.events import Meta
from service.pages.assets import asset_path
from service.pages.backoffice.timeline import ENTRIES_MAX, VALUE_BYTES_MAX
from service.pages.console.requests import caused
from tests.ledger.raw_events import RawEvent, write_foreign
from tests.pages.markup import PAGE_BYTES_MAX
from tests.pages.visitor import Visitor
from tests.patience import eventually
from tests.world import STAFF

pytestmark = [pytest.mark.followed, pytest.mark.asyncio(loop_scope="module")]

CLAIMS = 2 * ENTRIES_MAX + 3
OLDER = re.compile(r'href="(\?before=[^"]+)"')
DRESS = ("pages.css", "pages.js", "icon.svg")


@pytest.fixture
def world(module_world):
    """Return the world of all tests here: each has a partner of its own."""
    return module_world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def staff(module_world):
    """Return a member of the team."""
    await module_world.service.staff.add("team@example.com", STAFF)
    return await Visitor(module_world).sign_in("team@example.com")


async def claimed(partner, entity_id, number, **more):
    """Create a claim whose own texts begin with a number."""
    answer = await partner.claim(entity_id, f"case-{number:03}", **more)
    assert answer.status_code == 201, answer.text


async def all_numbered(world):
    """Wait until every event has its position."""

    async def none_waits():
        async with world.service.modes["live"].ledger.database.writes.connection() as connection:
            return not await connection.fetchval("select count(*) from live.pending")

    await eventually(none_waits)


@pytest.mark.parametrize("character", ["'", "\N{GRINNING FACE}"])
async def test_a_page_of_the_longest_values_is_light(world, staff, character):
    """Under 100 kB with all assets, whatever partners write; shortened values say so."""
    partner, entity_id = await world.connected()
    longest = character * 240
    more = {"partner_user_id": longest, "partner_invoice_ids": [longest] * 12}
    for number in range(ENTRIES_MAX + 1):
        reference = f"{number:03}{longest}"
        answer = await partner.claim(entity_id, reference, **more)
        assert answer.status_code == 201, answer.text
    await all_numbered(world)
    page = await staff.get(f"/backoffice/timeline/{entity_id}")
    dress = [await staff.get(asset_path(name)) for name in DRESS]
    assert sum(len(one.content) for one in (page, *dress)) < PAGE_BYTES_MAX
    assert page.text.count("<code>ClaimCreated<") == ENTRIES_MAX
    assert page.text.count('… <span class="tag">shortened</span>') == 3 * ENTRIES_MAX


async def test_no_more_is_read_of_a_value_than_is_shown(world, staff, monkeypatch):
    """A partner's longest texts hold up no other request: marks are sought in their beginning."""
    partner, read = await world.partner(), list[int]()
    entity_id = await partner.connected_entity()
    await claimed(partner, entity_id, 1, partner_invoice_ids=["\u3002" * 250] * 80)
    await all_numbered(world)

    def counted(text):
        read.append(len(text))
        return visible(text)

    monkeypatch.setattr("service.pages.backoffice.timeline.visible", counted)
    page = await staff.get(f"/backoffice/timeline/{entity_id}")
    assert '["\u3002\u3002' in html.unescape(page.text)
    assert 'class="tag">shortened<' in page.text
    assert max(read) == VALUE_BYTES_MAX + 1


async def test_what_this_service_did_not_write_is_called_that(world, staff):
    """The back office names it; a partner's request shows none of it."""
    partner, entity_id = await world.connected()
    answer = await partner.claim(entity_id, "case-1")
    claim_id, request_id = answer.json()["claim_id"], answer.headers["X-Request-Id"]
    live = world.service.modes["live"].ledger
    moved = ClaimStageChanged(claim_id=claim_id, stage="withdrawn")
    actor = f"partner:{partner.partner_id}/key_x"
    meta = Meta(world.service.clock(), actor, request_id, live.name)
    stream = claim_stream("live", 0, partner.partner_id, entity_id, "case-1")
    state = live.codec.encode(stream, 2, moved, meta, None)
    with psycopg.connect(world.service.settings.database_url) as holder:
        holder.execute("select from live.head for update")  # so that nothing sets it aside
        await write_foreign(live, RawEvent(stream, 2, "ClaimStageChanged", state))
        page = await staff.get(f"/backoffice/timeline/{claim_id}")
        events = await caused(ActivityReader(live), partner.partner_id, request_id)
    assert page.text.count("This service did not write this event") == 1
    assert [one.topic for one in events] == ["ClaimCreated"]


async def test_every_event_is_reached(world, staff):
    """Page by page to the first event, each once, across three ledgers."""
    partner, entity_id = await world.connected()
    for number in range(CLAIMS):
        await claimed(partner, entity_id, number)
        if number % 20 == 0:  # events of the ledger of accounts in between
            await world.service.partners.issue_key(partner.partner_id, "test", STAFF)
    await all_numbered(world)
    path, seen, pages = f"/backoffice/timeline/{partner.partner_id}", [], 0
    query = ""
    while True:
        shown = (await staff.get(path + query)).text
        seen += re.findall(r"<td>((?:live|accounts|test) \d+)</td>", shown)
        pages += 1
        older = OLDER.search(shown)
        assert (f'href="{path}" rel="first"' in shown) == (pages > 1)
        if older is None:
            break
        query = older[1]
    # Of the accounts: applied, approved and two keys; of both modes: links and a sandbox.
    assert len(seen) == len(set(seen)) > CLAIMS + 5
    assert pages == -(-len(seen) // ENTRIES_MAX)
    for ledger in ("live", "accounts"):
        positions = [int(one.split()[1]) for one in seen if one.startswith(ledger)]
        assert positions == sorted(positions, reverse=True)


async def test_an_invalid_position_shows_the_newest_events(world, staff):
    """Nothing else is shown, and nothing fails."""
    partner = await world.partner()
    path = f"/backoffice/timeline/{partner.partner_id}"
    for before in ("x", "1", "1.2", "1.2.-3", "1.2.3.4", "\u0661..", "9" * 40):
        answer = await staff.get(path, params={"before": before})
        assert (answer.status_code, "PartnerApplied" in answer.text) == (200, True), before


async def test_before_the_first_event_there_is_nothing(world, staff):
    """The page says so, and links back."""
    partner = await world.partner()
    path = f"/backoffice/timeline/{partner.partner_id}"
    for before in ("1.1.1", f"1.1.{NUMBERED}"):
        answer = await staff.get(path, params={"before": before})
        assert answer.status_code == 200
        assert f'href="{path}"' in answer.text
    assert "There are no older events." in (await staff.get(f"{path}?before=1.1.1")).text


async def test_hashes_of_credentials_are_not_shown(world, staff):
    """Neither a key's nor a link's: no reader of a timeline needs them."""
    partner = await world.partner()
    await partner.call("POST", "/connect-requests", json={"partner_user_id": "u"})
    await all_numbered(world)
    page = (await staff.get(f"/backoffice/timeline/{partner.partner_id}")).text
    assert "ApiKeyIssued" in page
    assert "ConnectLinkIssued" in page
    assert "secret_hash" not in page
    assert "token_hash" not in page


async def test_names_references_and_beginnings_of_ids_are_found(world, staff):
    """A part of a partner's name, its own references, and an id that somebody cut."""
    partner, entity_id = await world.connected()
    claim = (await partner.claim(entity_id, "Case 7/%_")).json()
    await partner.call("POST", "/connect-requests", json={"partner_user_id": "user-7"})
    (row,) = await world.service.partner_list.partners(partner.partner_id)

    async def found(sought):
        return (await staff.post("/backoffice", sought=sought)).text

    assert partner.partner_id in await found(row["name"][1:-1].upper())
    assert claim["claim_id"] in await found("Case 7/%_")
    assert "lnk_" in await found("user-7")
    assert claim["claim_id"] in await found(claim["claim_id"][:-6])
    assert "Nothing has this ID" in await found("%")
    assert "Nothing has this ID" in await found("case 7/%_")  # another reference


async def test_a_timeline_is_filtered_by_kind_and_by_who(world, staff, monkeypatch):
    """Each page has what matches alone; where long stretches have nothing, one looks on."""
    partner, entity_id = await world.connected()
    claims = [(await partner.claim(entity_id, f"c-{n}")).json()["claim_id"] for n in range(3)]
    path = f"/backoffice/timeline/{entity_id}"
    await staff.post(f"/backoffice/claims/{claims[0]}/stage", stage="closed", seen="triage")
    await all_numbered(world)
    await eventually(lambda: followed(world))

    async def topics(query):
        page = await staff.get(f"{path}?{query}")
        assert page.status_code == 200
        return re.findall(r"<li><code>(\w+)</code></li>", page.text)

    assert await topics("kind=EntityConnected") == ["EntityConnected"]
    assert await topics("kind=ClaimCreated&by=partner&ledger=live") == ["ClaimCreated"] * 3
    assert await topics("kind=ClaimCreated&by=staff") == []
    assert await topics("kind=ClaimCreated&ledger=test") == []
    assert set(await topics("by=partner")) == {"ClaimCreated"}
    assert "No event here matches" in (await staff.get(f"{path}?kind=ClaimCreated&by=staff")).text
    for query in ("kind=Nothing", "by=nobody", "ledger=none"):
        assert (await staff.get(f"{path}?{query}")).status_code == 400, query
    # Of a claim that moved, its stream has one fact by the team.
    moved = await staff.get(f"/backoffice/timeline/{claims[0]}?by=staff")
    assert "ClaimStageChanged" in moved.text
    assert 'href="/backoffice/timeline/stf_' in moved.text
    assert f'href="/backoffice/claims/{claims[0]}"' in moved.text

    monkeypatch.setattr(reader, "LOOKED_AT_MAX", 2)
    seen, query, pages = [], "?kind=EntityConnected", 0
    while query:
        page = (await staff.get(path + query)).text
        seen += re.findall(r"<li><code>(\w+)</code></li>", page)
        older = re.search(r'href="(\?[^"]*before=[^"]+)"', page)
        query, pages = html.unescape(older[1]) if older else "", pages + 1
    assert seen == ["EntityConnected"]
    assert pages > 2


async def test_a_page_leads_on_while_the_index_is_far_behind(staff, monkeypatch):
    """It says so where it found nothing in its part of the log: the id may be known further on."""
    path = "/backoffice/timeline/clm_00000000000000000000000000"
    assert (await staff.get(path)).status_code == 404
    # As if the index were behind by more than a page may read: then one reads nothing of the log.
    monkeypatch.setattr("service.pages.backoffice.timeline.BEYOND_MAX", -1)
    page = await staff.get(path)
    assert "Nothing among the newest events matches" in page.text
    assert OLDER.search(page.text)


async def followed(world):
    """Return whether activity has come to the end of the log."""
    async with world.service.modes["live"].ledger.database.writes.connection() as connection:
        return await connection.fetchval(
            "select s.position = h.size from live.subscriptions as s, live.head as h"
            " where s.name = 'activity'"
        )
